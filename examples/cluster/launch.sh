#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts the processes of a run on this machine: what torchrun does, without Python.
#
#   examples/cluster/launch.sh --per-node 4 -- ./my_trainer --run runs/mine
#   examples/cluster/launch.sh --nodes 2 --node 1 --per-node 8 --master node0:29500 -- ./my_trainer
#
#   --nodes N          machines of the run; start the script on each of them     (1)
#   --node R           which of them this is, from 0 on                          (0)
#   --per-node P       processes on each: one for each GPU, or as many as given  (GPUs, or 1)
#   --master HOST:PORT machine 0, where the processes meet                       (127.0.0.1:29500)
#
# After SIGTERM, SIGINT or SIGUSR1 all processes get SIGTERM: the recipe needs Spot<SigtermSave>. The
# script exits with 0 if the run is finished, with 75 if it was stopped and has saved, and otherwise
# with the code of the failed process of the lowest rank.
set -uo pipefail

usage() {
  sed -n '/^#   examples/,/^#   --master/s/^# \{0,3\}//p' "$0" >&2
  exit 2
}

nodes=1 node=0 per_node='' master=127.0.0.1:29500
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  [ $# -ge 2 ] || usage
  case $1 in
    --nodes) nodes=$2 ;;
    --node) node=$2 ;;
    --per-node) per_node=$2 ;;
    --master) master=$2 ;;
    *) usage ;;
  esac
  shift 2
done
if [ "${1:-}" != -- ] || [ $# -lt 2 ]; then usage; fi
shift
case $master in *:*) ;; *) master=$master:29500 ;; esac
if [ -z "$per_node" ]; then
  per_node=$(nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU') || per_node=1
fi
for number in "$nodes" "$node" "$per_node"; do
  case $number in '' | *[!0-9]*) usage ;; esac
done
if [ "$per_node" = 0 ] || [ "$node" -ge "$nodes" ]; then usage; fi

# What the processes write for each other is told from what others write by a secret that they share. Start
# the script with the same FRUGAL_CLUSTER_TOKEN on all machines: docs/cluster/trust.md.
if [ "$nodes" = 1 ] && [ -z "${FRUGAL_CLUSTER_TOKEN:-}${FRUGAL_CLUSTER_TOKEN_FILE:-}" ]; then
  FRUGAL_CLUSTER_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  export FRUGAL_CLUSTER_TOKEN
fi

export WORLD_SIZE=$((nodes * per_node)) MASTER_ADDR=${master%:*} MASTER_PORT=${master##*:}
# Processes must have the same number of threads; left alone, each takes all cores.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((($(nproc) + per_node - 1) / per_node))}

ranks=() told='' woken='' reached=0
# shellcheck disable=SC2317  # the trap below calls it
tell() {
  local each  # the loop below has one as well, and is interrupted by this
  told=yes woken=yes reached=${#ranks[@]}
  for each in "${ranks[@]}"; do kill -TERM "$each" 2>/dev/null; done
}
trap tell TERM INT USR1
for ((local = 0; local < per_node; ++local)); do
  # A process whose launcher was killed would keep its GPU and the run's lock.
  RANK=$((node * per_node + local)) LOCAL_RANK=$local setpriv --pdeathsig TERM "$@" &
  ranks+=($!)
done
# The signal came while they were being started.
if [ -n "$told" ] && [ "$reached" -lt "$per_node" ]; then tell; fi

failed='' stopped=''
for each in "${ranks[@]}"; do
  # A signal ends `wait` before the process has ended, so it is waited for again.
  woken=yes code=0
  while [ -n "$woken" ]; do
    woken='' code=0
    wait "$each" || code=$?
  done
  # 143: the signal came before the trainer had begun to listen. It has nothing to save that was not
  # saved before.
  if [ "$code" = 143 ] && [ -n "$told" ]; then code=75; fi
  case $code in
    0) ;;
    75) stopped=yes ;;
    *) failed=${failed:-$code} ;;
  esac
done
[ -z "$failed" ] || exit "$failed"
[ -z "$stopped" ] || exit 75
