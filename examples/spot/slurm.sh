#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A training run that survives time limits and preemption under SLURM.
#
#   sbatch examples/spot/slurm.sh                                # the example, into runs/demo
#   sbatch examples/spot/slurm.sh ./my_trainer --run runs/mine   # any trainer with the same exit codes
#
# The trainer exits 0 when the run is finished, 75 when it was stopped and has saved. This script
# queues the job again after 75 and after nothing else; any other code it passes on.
#
#SBATCH --job-name=frugal
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=8G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=frugal-%j.log
# Two minutes before the time limit, to this script alone (B:). They have to be longer than one step
# and one save take together.
#SBATCH --signal=B:USR1@120
set -uo pipefail

# A run that never gets anywhere would otherwise queue itself for ever.
max_restarts=${MAX_RESTARTS:-100}

[ $# -gt 0 ] || set -- build/release/examples/production --run runs/demo

say() { printf '%s %s: %s\n' "$(date +%FT%T)" "${SLURM_JOB_ID:?run this with sbatch}" "$*"; }

step='' told=''
# Whatever arrives is passed on as SIGUSR1: srun hands that to the trainer, while a SIGTERM to srun
# kills the trainer where it stands.
tell() {
  told=yes woken=yes
  if [ -n "$step" ]; then kill -USR1 "$step" 2>/dev/null; fi
}
trap tell USR1 TERM

say "start ${SLURM_RESTART_COUNT:-0}: $*"
srun "$@" &
step=$!
if [ -n "$told" ]; then tell; fi

# A signal ends `wait` before the trainer has ended, so it is waited for again.
woken=yes code=0
while [ -n "$woken" ]; do
  woken='' code=0
  wait "$step" || code=$?
done

# 138: the signal came before the trainer had begun to listen. It has nothing to save that was not
# saved before.
if [ "$code" = 138 ] && [ -n "$told" ]; then code=75; fi

if [ "$code" != 75 ]; then
  say "the trainer ended with $code"
  exit "$code"
fi

# A job that was cancelled stays cancelled, and one that SLURM itself preempts it also requeues.
# Where SLURM does not say how the job is, scontrol may still know.
state=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T) || state=RUNNING
if [ "$state" != RUNNING ]; then
  say "stopped and saved; the job is $state, so it is not queued again from here"
elif [ "${SLURM_RESTART_COUNT:-0}" -ge "$max_restarts" ]; then
  say "stopped and saved; it was restarted $max_restarts times, so it is not queued again"
elif scontrol requeue "$SLURM_JOB_ID"; then
  say "stopped and saved; queued again"
else
  say "stopped and saved, but scontrol could not queue it again"
fi
exit 75
