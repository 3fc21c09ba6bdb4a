#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# torchrun for a trainer that exits with 75 when it was stopped and has saved: this script exits with
# 75, too. torchrun takes 75 for a failure, starts the ranks again or ends with 1, and the code is
# lost.
#
#   examples/cluster/torchrun.sh --nproc-per-node 4 -- ./my_trainer --run runs/mine
#   examples/cluster/torchrun.sh --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d \
#     --rdzv-endpoint node1:29400 --rdzv-id mine -- ./my_trainer --run /shared/mine
#
# What comes before -- goes to torchrun, which Python's torch brings along. On several machines start
# it on each of them, as torchrun.
set -uo pipefail

flags=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  flags+=("$1")
  shift
done
if [ "${1:-}" != -- ] || [ $# -lt 2 ]; then
  echo "usage: $0 [torchrun's flags] -- PROGRAM [ARGUMENT...]" >&2
  exit 2
fi
shift

stopped=$(mktemp) || exit 1
trap 'rm -f "$stopped"' EXIT
launcher=''
# shellcheck disable=SC2317  # the trap below calls it
tell() { [ -z "$launcher" ] || kill -TERM "$launcher" 2>/dev/null; }
trap tell TERM INT

# A rank that was stopped leaves a word here, and is no failure for torchrun. `exec` in between would
# leave nobody to do so; a signal to the rank's group reaches the trainer by itself.
# shellcheck disable=SC2016
rank='stopped=$1; shift
"$@" & trainer=$!
trap "kill -TERM $trainer 2>/dev/null" TERM INT USR1
code=0; wait $trainer || code=$?
while kill -0 $trainer 2>/dev/null; do code=0; wait $trainer || code=$?; done
[ "$code" != 75 ] || { echo 75 >>"$stopped"; exit 0; }
exit "$code"'
torchrun "${flags[@]}" --no-python bash -c "$rank" rank "$stopped" "$@" &
launcher=$!

# A signal ends `wait` before torchrun has ended, so it is waited for again.
code=0
wait "$launcher" || code=$?
while kill -0 "$launcher" 2>/dev/null; do
  code=0
  wait "$launcher" || code=$?
done
# A SIGTERM of ours ends torchrun with an error of its own, whatever its ranks have exited with.
if [ -s "$stopped" ]; then exit 75; fi
exit "$code"
