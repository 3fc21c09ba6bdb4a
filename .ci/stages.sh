# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # root and state are ./dev's
# The whole of ./dev test --all, stage by stage; read by ./dev. A stage that cannot be run has failed.

# count PASSED FAILED, for checks that ctest does not count. Each stage has a file.
count() { printf '%d %d\n' "$1" "$2" >>"$counts"; }

# run_ctest FOLDER [ctest flags]: runs it and counts its tests.
run_ctest() {
  local folder=$1 log=$state/log/ctest-${1##*/}.log total failed rc=0
  shift
  # Twice the number of cores: many wait, for a disk or for a process that they have killed.
  (cd "$folder" && ctest --parallel "$((2 * $(jobs)))" --output-on-failure --no-tests=error "$@") >"$log" 2>&1 || rc=$?
  read -r failed total < <(sed -n 's/.* \([0-9]*\) tests* failed out of \([0-9]*\)$/\1 \2/p' "$log") || true
  if [ "$rc" != 0 ]; then
    cat "$log" >&2
    [ "${failed:-0}" != 0 ] || failed=1
  fi
  count "$((${total:-$failed} - failed))" "$failed"
  return "$rc"
}

# run_unittest FILE [ARGUMENT...]: runs a file of Python's unittest and counts its tests.
run_unittest() {
  local log total failed rc=0 begun=$SECONDS
  log=$state/log/unittest-$(basename "$1" .py).log
  "${unittest_python:-python3}" "$@" >"$log" 2>&1 || rc=$?
  total=$(sed -n 's/^Ran \([0-9]*\) tests* in .*/\1/p' "$log")
  failed=$(sed -n 's/^FAILED //p' "$log" | tr -dc '0-9\n+,' | tr ',' '+')
  failed=$((${failed:-0}))
  # No tests at all, and a crash before the last one, are failures too.
  if [ "${total:-0}" = 0 ]; then rc=1 total=1 failed=1; fi
  if [ "$rc" != 0 ] && [ "$failed" = 0 ]; then failed=1; fi
  [ "$rc" = 0 ] || cat "$log" >&2
  printf '   %s: %d tests, %d s\n' "${1##*/}" "$total" "$((SECONDS - begun))" >&2
  count "$((total - failed))" "$failed"
  return "$rc"
}

# Of stage_interop: real text, a terminal, Google Benchmark's reader of what compare() writes, a browser for the
# reports, and SLURM.
interop_packages=(bible-kjv bible-kjv-text dict-gcide tmux libbenchmark-tools python3-scipy chromium
  fonts-dejavu-core slurm-wlm munge)

stage_setup() {
  need_packages "${basic_packages[@]}" "${test_packages[@]}" python3-venv libclang-rt-19-dev \
    clang-format-19 shellcheck systemd
  # In parallel: unpacking uses one core, and a download none. Each checks for its own space only.
  [ -r "$state/cuda-2.11.0/.stamp" ] || need_space 20400 "$root" "getting the wheels of CI"
  # Of later stages: these wait for what they need, and get it themselves if that has failed.
  (pinned_torch 2.15.0) &
  # 1.9 GB of download, 3 GB unpacked.
  (pinned_wheels "$state/cuda-2.11.0" cuda.txt 6000) &
  # 50 MB of download, 180 MB unpacked.
  (pinned_wheels "$state/sky" spot.txt 400) &
  # 3 GB of download, 5 GB unpacked: PyTorch with what it imports, PEFT and transformers.
  (virtual_environment model 8000) &
  (virtual_environment conan 200) &
  (need_packages "${interop_packages[@]}" && need_promtool) &
  # Of the next one.
  local data
  data_wheels & data=$!
  pinned_torch 2.11.0
  wait "$data"
}

stage_format() { verb_format --check && count 1 0; }

# limit_units SECONDS [MIB]: limits of a translation unit, so that growth is noticed: three gigabytes,
# and processor seconds with a factor of two for a slow day of the machine.
limit_units() { budget=(--most-seconds "${FRUGAL_MOST_SECONDS:-$1}" --most-mib "${2:-3000}"); }

# clang with the older LibTorch builds everything, and runs all tests but those without LibTorch, which
# the sanitizers run.
build_with_clang() {
  limit_units 120
  pinned_torch 2.11.0
  configure tests "$root/build/tests" -DFRUGAL_LIBTORCH="$torch" -DFRUGAL_TORCH_FREE_TESTS=OFF \
    -DFRUGAL_BUILD_BENCH=OFF
  build "$root/build/tests"
}
stage_clang() { build_with_clang && count 1 0; }
stage_clang_tests() {
  build_with_clang  # nothing is left to do, unless this stage runs alone
  run_ctest "$root/build/tests"
}

# headers EVERY: each header that users include is included twice by an otherwise empty file; with ON
# every header. One compiler suffices for that.
stage_headers() {
  limit_units 60
  pinned_torch 2.11.0
  configure tests "$root/build/tests" -DFRUGAL_LIBTORCH="$torch" -DFRUGAL_EVERY_HEADER="$1"
  build "$root/build/tests" headers_alone
  count 1 0
}

# g++ with the newer LibTorch builds and runs what may differ between compilers and versions of LibTorch, and
# parses frugal.hpp and three examples: tests/CMakeLists.txt lists what is left to clang. Of tests/reject
# it compiles the cases without LibTorch.
stage_gcc() {
  # The precompiled header of everything takes 3.4 GB, once; the largest unit less: a machine of two
  # cores has room for both.
  limit_units 200 4000
  pinned_torch 2.15.0
  configure gcc-syntax "$root/build/gcc-syntax" -DFRUGAL_LIBTORCH="$torch"
  build "$root/build/gcc-syntax"
  run_ctest "$root/build/gcc-syntax"
}

# whole PRESET VERSION: builds and runs everything, with one compiler and one LibTorch.
stage_whole() {
  pinned_torch "$2"
  configure "$1" "$root/build/$1-$2" -DFRUGAL_LIBTORCH="$torch" -DFRUGAL_BUILD_BENCH=ON
  build "$root/build/$1-$2"
  run_ctest "$root/build/$1-$2"
}

# run_example NAME [flags]: as its reader would run it, in its own folder.
run_example() {
  local name=$1 log=$state/log/example.log begun=$SECONDS
  shift
  if (cd "$state/examples" && "$root/build/tests/examples/$name" "$@") >"$log" 2>&1; then
    printf '   %s: %d s\n' "$name" "$((SECONDS - begun))" >&2
    count 1 0
  else
    printf 'example %s failed:\n' "$name $*" >&2
    cat "$log" >&2
    count 0 1
    return 1
  fi
}

# A run with three checkpoints, of which two go to cold storage and one is restored.
run_archive_example() {
  local step run=$state/examples/archived failed=0
  for step in 1 2 3; do "$root/build/tests/tests/fault_save" save "$run" "$step" || return 1; done
  mkdir -p "$run-cold"
  run_example archive_checkpoints --run "$run" --to "$run-cold" || failed=1
  run_example archive_checkpoints --run "$run" --to "$run-cold" --older-than 0 --go || failed=1
  run_example archive_checkpoints --run "$run" --put "cp {file} $run-cold/{name}" \
    --get "cp $run-cold/{name} {file}" --restore 2 || failed=1
  run_example archive_checkpoints --run "$run" --to "$run-cold" --list || failed=1
  [ "$(cd "$run/checkpoints" && echo *)" = 'step-00000002 step-00000003' ] || failed=1
  return "$failed"
}

# Images become tar shards, the shards records, and lines of text shards.
run_pack_example() {
  local images=/usr/share/datasets/fashion-mnist/t10k failed=0
  run_example frugal_pack --to packed idx "$images-images-idx3-ubyte.gz" "$images-labels-idx1-ubyte.gz" || failed=1
  run_example frugal_pack --to records --as records --shuffle 1 tar packed/shard-000000.tar || failed=1
  run_example frugal_pack --to lines lines "$root/LICENSE" || failed=1
  return "$failed"
}

# Of lines that are there twice, none stays twice.
run_deduplicate_example() {
  local folder=$state/examples
  awk 'length > 60' "$root/LICENSE" | sort -u >"$folder/once"
  cat "$folder/once" "$folder/once" >"$folder/twice"
  run_example deduplicate twice --report removed.jsonl --page removed.html --kept kept || return 1
  [ "$(wc -l <"$folder/kept")" -le "$(wc -l <"$folder/once")" ] && [ -s "$folder/kept" ] &&
    [ "$(sort "$folder/kept" | uniq -d | wc -l)" = 0 ]
}

# plan_value KEY [argument...]: the number of a key in a plan, with four digits.
plan_value() {
  local key=$1
  shift
  "$root/build/tests/examples/frugal_plan" "$@" --json | python3 -c 'import json, sys
rows = {row["key"]: row["value"] for section in json.load(sys.stdin)["sections"] for row in section["rows"]}
print("%.4g" % rows[sys.argv[1]])' "$key"
}

# Each subcommand plans something, its figures are those of docs/plan.md, and wrong arguments are
# exit code 2.
run_plan_example() {
  local arguments key figure rc failed=0 prices=$state/examples/prices.json
  while read -r -a arguments; do
    run_example frugal_plan "${arguments[@]}" || failed=1
  done <<'PLANS'
optimal --money 1000 --offer p4d.24xlarge --spot-price
run --parameters 1.3e9 --device H100 --devices 8 --price-per-node 32 --spot-per-node 9.6 --preemptions-per-h 0.05
cost --hours 72 --devices 8 --runs 24 --price-per-device 4
levers --cost-per-run 37748 --hours 72 --devices 8 --runs 24 --lever spot:price:0.35795 --lever BF16:hours:0.66667 --write levers.json
allreduce --devices 8 --parameters 1.3e9 --gbit-per-s 600 --samples-per-s 850 --samples 32
ranks --micro-batch-s 0.1333 --update-s 0.004 --micro-batches 64 --parameters 1.24e8 --gbit-per-s 10 --steps 20000 --price-per-device 1.2 --runs 12 --most 16
memory --parameters 1.3e9
checkpoint --save-s 15 --lifetime-h 24
spot --hours 72 --price-per-device 4 --spot-per-device 1.6 --preemptions-per-h 0.1 --json
devices
--help
PLANS
  python3 -m json.tool "$state/examples/levers.json" >/dev/null || failed=1
  while read -r key figure arguments; do
    # shellcheck disable=SC2086
    [ "$(plan_value "$key" $arguments)" = "$figure" ] || { printf '%s of frugal_plan %s\n' "$key" "$arguments" >&2 && failed=1; }
  done <<'FIGURES'
device_hours 813.8 optimal --money 1000 --offer p4d.24xlarge --spot-price
rule_cost 1000 optimal --money 1000 --offer p4d.24xlarge --spot-price
rule_parameters 2.887e+09 optimal --compute 1e21
fit_parameters 7.828e+09 optimal --compute 1e21
fit_over_budget 2.651 optimal --compute 1e21
saved 6.898e+05 levers --cost-per-run 37748 --hours 72 --devices 8 --runs 24 --lever spot:price:0.35795 --lever BF16:hours:0.66667
efficiency 0.2368 allreduce --devices 8 --parameters 1.3e9 --gbit-per-s 600 --samples-per-s 850 --samples 32
cost_4 71.37 ranks --micro-batch-s 0.1333 --update-s 0.004 --micro-batches 64 --parameters 1.24e8 --gbit-per-s 10 --steps 20000 --price-per-device 1.2
efficiency_8 0.6197 ranks --micro-batch-s 0.1333 --update-s 0.004 --micro-batches 64 --parameters 1.24e8 --gbit-per-s 10 --steps 20000
daly_interval 1570 checkpoint --save-s 60 --lifetime-h 6
on_demand_cost 640.5 spot --hours 10 --devices 12 --price-per-node 32 --spot-per-device 1 --preemptions-per-h 0
spot_cost 8.007 spot --hours 10 --devices 4 --offer g4dn.xlarge --spot-per-node 0.2 --preemptions-per-h 0
spot_cost 120.1 spot --hours 10 --devices 12 --price-per-node 32 --spot-per-device 1 --preemptions-per-h 0
FIGURES
  while read -r arguments; do
    # shellcheck disable=SC2086
    "$root/build/tests/examples/frugal_plan" $arguments 2>/dev/null >&2 && rc=0 || rc=$?
    [ "$rc" = 2 ] || { printf 'exit code %s of frugal_plan %s\n' "$rc" "$arguments" >&2 && failed=1; }
  done <<'WRONG'

optimal --compute 0
optimal --compute 1e21 --price-per-device 4
optimal --compute 1e21 --utilisation 0.5
optimal --money 10 --device nothing
optimal --money 10 --offer p4d.24xlarge --device H100
cost --hours 1 --price-per-device -4
ranks --micro-batch-s 0.1 --micro-batches 64 --parameters 1e8 --gbit-per-s 10 --steps 0
ranks --micro-batch-s 0.1 --micro-batches 64 --parameters 1e8 --gbit-per-s 10 --steps 10 --exact --bf16
cost --hours 1 --price-per-device 4 --devices-per-node 4
cost --hours 1 --cost-per-run 0 --devices 0
run --parameters 1e9 --device H100 --overlap 0.5
run --parameters 1e9 --device H100 --price-per-device 4 --notice
run --parameters 1e9 --device H100 --price-per-device 4 --spot-per-device 1 --notice
run --parameters 1e9 --device H100 --devices 8 --gbit-per-s 0 --tokens-per-step 1
run --parameters 1e9 --device H100 --gbit-per-s 100 --overlap 0.5
cost --hours 1 --cost-per-run 100 --devices-per-node 4
WRONG
  printf '{\n  "format": "frugal prices",\n  "version": 1, "prices": [{"name": 7}]\n}\n' >"$prices"
  "$root/build/tests/examples/frugal_plan" devices --prices "$prices" 2>"$prices.said" >&2 && rc=0 || rc=$?
  [ "$rc" = 2 ] && grep -qF 'prices.json:3:37)' "$prices.said" || { cat "$prices.said" >&2 && failed=1; }
  return "$failed"
}

# Of the run that an example before it made. A folder without a run is exit code 1.
run_report_example() {
  local rc
  run_example frugal_report runs/fashion_mnist && [ -s "$state/examples/runs/fashion_mnist/report.html" ] || return 1
  "$root/build/tests/examples/frugal_report" "$root/docs" 2>/dev/null >&2 && rc=0 || rc=$?
  [ "$rc" = 1 ]
}

# Four processes come to the weights of one.
run_distributed_example() {
  local alone=$state/examples/distributed-1.txt four=$state/examples/distributed-4.txt program=$root/build/tests/examples/distributed
  if (cd "$state/examples" && "$program" --epochs 1 --run runs/distributed-1 >"$alone" &&
    "$root/examples/cluster/launch.sh" --per-node 4 --master 127.0.0.1:29519 -- \
      "$program" --epochs 1 --run runs/distributed-4 >"$four") 2>"$state/log/example.log" &&
    [ "$(grep -c 'hash' "$four")" = 4 ] && [ "$(sed -n 's/.*hash //p' "$alone" "$four" | sort -u | wc -l)" = 1 ]; then
    count 1 0
  else
    cat "$state/log/example.log" "$alone" "$four" >&2
    count 0 1
    return 1
  fi
}

# A GAN that is killed, perhaps before its first checkpoint, and started again, draws the samples of one that is not.
run_gan_example() {
  local folder=$state/examples/runs
  run_example gan --epochs 1 --run_dir runs/gan-whole || return 1
  (cd "$state/examples" && timeout -s KILL 3 "$root/build/tests/examples/gan" --epochs 1 --run_dir runs/gan-killed) \
    >/dev/null 2>&1 || true
  run_example gan --epochs 1 --run_dir runs/gan-killed || return 1
  cmp "$folder/gan-whole/samples.pgm" "$folder/gan-killed/samples.pgm"
}

stage_examples() {
  local source name failed=0 targets=(fault_save)
  pinned_torch 2.11.0
  configure tests "$root/build/tests" -DFRUGAL_LIBTORCH="$torch" -DFRUGAL_INSTALL_PROGRAMS=ON
  for source in "$root"/examples/*.cpp; do targets+=("$(basename "$source" .cpp)"); done
  build "$root/build/tests" "${targets[@]}"
  rm -rf "$state/examples"
  mkdir -p "$state/examples"
  finetune_data  # for compress and finetune
  for source in "$root"/examples/*.cpp; do
    name=$(basename "$source" .cpp)
    case $name in
    fashion_mnist) run_example "$name" --epochs 1 || failed=1 ;;
    archive_checkpoints) run_archive_example || failed=1 ;;
    frugal_pack) run_pack_example || failed=1 ;;
    frugal_plan) run_plan_example || failed=1 ;;
    deduplicate) run_deduplicate_example || failed=1 ;;
    finetune) run_example "$name" "$state/minilm/model" "$state/kjv.txt" 64 head lora || failed=1 ;;
    compress) run_example "$name" "$state/kjv.txt" 12 "$state/examples/gpt" || failed=1 ;;
    compare_recipes) run_example "$name" --steps 20 --repeats 1 || failed=1 ;;
    search) run_example "$name" --trials 9 --steps 270 || failed=1 ;;
    frugal_report) run_report_example || failed=1 ;;
    frugal_doctor) run_example "$name" --mib 8 && run_example "$name" --json --quick || failed=1 ;;
    image_sheet) run_example "$name" sheet.png || failed=1 ;;
    distributed) run_distributed_example || failed=1 ;;
    gan) run_gan_example || failed=1 ;;
    *) run_example "$name" || failed=1 ;;
    esac
  done
  # Installed, they find LibTorch and the libraries of the components.
  cmake --install "$root/build/tests" --prefix "$state/programs" >"$state/log/install.log" 2>&1 || failed=1
  for name in frugal_doctor frugal_pack frugal_plan frugal_report; do
    if "$state/programs/bin/$name" --help >/dev/null; then count 1 0; else count 0 1 && failed=1; fi
  done
  return "$failed"
}

# The files of examples/spot and examples/cluster, each parsed by the program that it is written for. ctest runs the
# SLURM script.
stage_spot() {
  local failed=0
  need_packages shellcheck systemd
  pinned_wheels "$state/sky" spot.txt 400
  if shellcheck "$root/examples/spot/slurm.sh" "$root"/examples/cluster/*.sh >&2; then count 1 0; else count 0 1 && failed=1; fi
  run_unittest "$root/tests/spot/unit_test.py" || failed=1
  PYTHONPATH=$state/sky run_unittest "$root/tests/spot/sky_test.py" || failed=1
  PYTHONPATH=$state/sky run_unittest "$root/tests/spot/cluster_files_test.py" || failed=1
  return "$failed"
}

stage_sanitizer() {
  local programs=(test_torchfree test_optimised)
  [ "$1" != tsan ] || programs=(test_torchfree)  # only what uses threads
  limit_units 100  # another lane of CI takes half of a core meanwhile
  build_sanitized "$1" "${programs[@]}"
  run_ctest "$root/build/$1" --tests-regex '^torch-free: '
}
# build_sanitized PRESET TARGET...: stages of two lanes build in the folder of the address sanitizer.
build_sanitized() {
  local preset=$1
  shift
  (
    flock 9
    configure "$preset" "$root/build/$preset"
    build "$root/build/$preset" "$@"
  ) 9>"$state/$preset.lock"
}

# Each parser under its fuzzer. Findings stay in .frugal/fuzz, and so does the corpus: the next run
# begins there.
stage_fuzz() {
  local source failed=0
  build_sanitized asan fuzz
  for source in "$root"/tests/fuzz/*.cpp; do
    if fuzz_one "$(basename "$source" .cpp)"; then count 1 0; else count 0 1 && failed=1; fi
  done
  return "$failed"
}
fuzz_one() {
  local name=$1 folder=$state/fuzz/$1 log=$state/log/fuzz-$1 number parts=() rc=0
  mkdir -p "$folder/corpus" "$root/build/asan/tests/seeds/$name"
  # One per core, over one corpus.
  rm -f "$log"-*.log
  for number in $(seq "$(jobs)"); do
    "$root/build/asan/tests/fuzz_$name" -timeout=10 \
      -max_total_time="${FRUGAL_FUZZ_SECONDS:-2}" \
      -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 -artifact_prefix="$folder/" \
      -dict="$root/tests/fuzz/$name.dict" "$folder/corpus" "$root/build/asan/tests/seeds/$name" \
      >"$log-$number.log" 2>&1 & parts+=($!)
  done
  for number in $(seq "$(jobs)"); do
    wait "${parts[$((number - 1))]}" || { tail -n 50 "$log-$number.log" >&2 && rc=1; }
  done
  printf '   %s: inputs tried: %d\n' "$name" \
    "$(awk '/^stat::number_of_executed_units/ { sum += $2 } END { print sum + 0 }' "$log"-*.log)" >&2
  return "$rc"
}

# promtool, of Debian's package prometheus. Unpacked and not installed: the package brings a server, its web
# pages and a service.
need_promtool() {
  local folder=$state/promtool partial=$state/promtool.partial log=$state/log/promtool.log
  ! [ -x "$folder/usr/bin/promtool" ] || return 0
  need_space 400 "$state" "unpacking promtool"
  rm -rf "$folder" "$partial"
  mkdir -p "$partial" "$state/log"
  say "getting promtool"
  if ! { apt "$log" update && (cd "$partial" && apt-get download prometheus && dpkg -x prometheus_*.deb .); } \
    >>"$log" 2>&1; then
    die "Debian's package prometheus could not be got ($(grep -m1 '^E:' "$log" || echo "see $log")). Check the network and apt's sources."
  fi
  find "$partial" -type f ! -name promtool -delete
  mv "$partial" "$folder"
}

# Files that Python wrote are read, and the other way round. The sanitizers check the programs without
# LibTorch meanwhile.
stage_interop() {
  local script failed=0
  need_packages "${interop_packages[@]}"
  need_promtool
  pinned_torch 2.11.0
  build_sanitized asan interop_programs
  configure tests "$root/build/tests" -DFRUGAL_LIBTORCH="$torch"
  build "$root/build/tests" interop_programs
  # Two at a time: many wait for processes. The one that takes longest begins.
  virtual_environment model 8000
  virtual_environment search 1000
  virtual_environment trackers 1500
  local running=0 scripts=("$root"/tests/interop/kills.py "$root"/tests/step/exporter_test.py)
  for script in "$root"/tests/interop/*.py; do
    [[ $script = */kills.py ]] || scripts+=("$script")
  done
  for script in "${scripts[@]}"; do
    if [ "$running" = 2 ]; then
      wait -n || failed=1
      running=1
    fi
    run_interop "$script" &
    running=$((running + 1))
  done
  while [ "$running" != 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
  done
  return "$failed"
}

# run_interop SCRIPT: with the Python packages that it names, and the program of its name, if there is one.
run_interop() {
  local name program unittest_python=python3 packages=
  name=$(basename "$1" .py)
  program=$root/build/asan/tests/interop_$name
  [ -x "$program" ] || program=$root/build/tests/tests/interop_$name
  if grep -q 'requirements/model.txt' "$1"; then
    unittest_python=$state/venv-model/bin/python
  elif grep -q 'requirements/search.txt' "$1"; then
    unittest_python=$state/venv-search/bin/python
  elif grep -q 'requirements/trackers.txt' "$1"; then
    unittest_python=$state/venv-trackers/bin/python
  else
    packages=$state/data-wheels
  fi
  [[ $1 != */interop/* ]] || set -- "$1" "$program"
  PATH=$state/promtool/usr/bin:$PATH PYTHONPATH=$packages run_unittest "$@"
}

# consumer FOLDER [CMake flags]: builds and runs tests/package there; of it `consumer_target`, if that is set,
# and the tests whose names contain `consumer_tests`.
consumer() {
  local folder=$1 log=$state/log/${1##*/}.log
  shift
  rm -rf "$folder"
  if ! { cmake -S "$root/tests/package" -B "$folder" -G Ninja -DCMAKE_CXX_COMPILER=g++ "$@" &&
    LD_PRELOAD=$(mimalloc) cmake --build "$folder" ${consumer_target:+--target "$consumer_target"}; } >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
  run_ctest "$folder" ${consumer_tests:+--tests-regex "$consumer_tests"}
}

# stage_package COMPILER
stage_package() {
  pinned_torch 2.11.0
  # An installed package must work without the checkout that installed it: this one is a copy, which
  # is removed with its LibTorch. The wheel's files are linked if the file system can.
  local clone=$state/tmp/clone
  rm -rf "$state/installed" "$clone"
  mkdir -p "$clone/.frugal"
  tar -C "$root" -c dev CMakeLists.txt CMakePresets.json LICENSE cmake include requirements | tar -x -C "$clone"
  cp -al "$(realpath "$state/torch-2.11.0")" "$clone/.frugal/torch-2.11.0" 2>/dev/null ||
    cp -a "$(realpath "$state/torch-2.11.0")" "$clone/.frugal/torch-2.11.0"
  env -u FRUGAL_LIBTORCH FRUGAL_TORCH_VERSION=2.11.0 "$clone/dev" install "$state/installed"
  rm -rf "$clone"
  # Compiled like a user's release, but at -O0: at -O3 frugal::compiled alone takes four minutes.
  consumer "$root/build/package" -DCMAKE_CXX_COMPILER="$1" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O0 -DNDEBUG" \
    -DCMAKE_PREFIX_PATH="$state/installed" \
    -DCONSUMER_COMPONENTS="archive;notices;recipes"
  grep -qF "LibTorch 2.11.0 in $(realpath "$state")/installed/lib/frugal/torch " "$state/log/package.log" ||
    { grep 'LibTorch' "$state/log/package.log" >&2 && return 1; }
  # The checkout itself as a part of a project: its targets are the same in both ways, and the program is
  # the one above. --release compiles it in each way.
  local way
  for way in add_subdirectory FetchContent; do
    rm -rf "$root/build/package-sources"
    cmake -S "$root/tests/package" -B "$root/build/package-sources" -G Ninja -DFRUGAL_BY="$way" \
      -DFRUGAL_SOURCE_DIR="$root" -DFRUGAL_LIBTORCH="$torch" >"$state/log/package-sources.log" 2>&1 ||
      { cat "$state/log/package-sources.log" >&2 && return 1; }
    count 1 0
  done
}

# The same, compiled: stage_sources add_subdirectory|FetchContent.
stage_sources() {
  pinned_torch 2.11.0
  consumer "$root/build/package-sources" -DCMAKE_CXX_COMPILER=clang++-19 -DFRUGAL_BY="$1" \
    -DFRUGAL_SOURCE_DIR="$root" -DFRUGAL_LIBTORCH="$torch"
}

# All of tests/fault at full size; the page has its figures.
stage_faults() {
  pinned_torch 2.11.0
  configure release "$root/build/release" -DFRUGAL_LIBTORCH="$torch"
  build "$root/build/release" fault_train fault_save frugal_fault
  FRUGAL_FAULT_EVERY=1 python3 "$root/bench/faults.py" --build "$root/build/release" --torch "$torch" --dry-run >&2 && count 1 0
}

# Published layouts of models as compiled steps, and recipes that Python compiles against an installed frugal.
stage_models() {
  virtual_environment model 8000
  [ -d "$state/installed/include" ] || "$root/dev" install "$state/installed"
  local unittest_python=$state/venv-model/bin/python
  run_unittest "$root/tests/step/models_test.py"
  run_unittest "$root/tests/step/train_test.py" "$state/installed"
}

# All tests on a machine with nothing on it: .ci/bare says what that is.
stage_bare() {
  need_packages debootstrap
  pinned_torch 2.11.0
  data_wheels
  local log=$state/log/bare.log rc=0
  "$root/.ci/bare" "$state/bare" >"$log" 2>&1 || rc=$?
  if [ "$rc" = 0 ]; then count 1 0; else tail -n 200 "$log" >&2; fi
  return "$rc"
}

# The Dockerfile's steps, and ./dev demo as another user than root.
stage_image() {
  need_packages debootstrap
  pinned_torch 2.11.0
  local log=$state/log/image.log rc=0
  "$root/.ci/bare" "$state/image" --image >"$log" 2>&1 || rc=$?
  if [ "$rc" = 0 ]; then count 1 0; else tail -n 200 "$log" >&2; fi
  return "$rc"
}

# clang-tidy: no warning in the headers, and no header with an unused include.
stage_tidy() {
  need_packages clang-tidy-19
  pinned_torch 2.11.0
  configure tests "$root/build/tests" -DFRUGAL_LIBTORCH="$torch"
  build "$root/build/tests" frugal_pch
  local failed=0
  if clang-tidy-19 --quiet -p "$root/build/tests" --extra-arg=-includefrugal/frugal.hpp \
    --warnings-as-errors='*' "$root/build/tests/tests/probe_torch.cpp" >&2; then
    count 1 0
  else
    count 0 1 && failed=1
  fi
  if python3 "$root/tests/tools/unused_includes.py" --torch "$torch" >&2; then
    count 1 0
  else
    count 0 1 && failed=1
  fi
  return "$failed"
}

stage_conan() {
  local log=$state/log/conan.log
  virtual_environment conan 200
  pinned_torch 2.11.0
  export CONAN_HOME=$state/conan FRUGAL_LIBTORCH=$torch
  rm -rf "$CONAN_HOME" "$state/conan-test"
  if ! "$state/venv-conan/bin/conan" create "$root/packaging/conan" --no-remote \
    --profile:all "$root/packaging/conan/debian12.profile" \
    --conf tools.cmake.cmake_layout:test_folder="$state/conan-test" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
  count 1 0
}

# stage_vcpkg [compiled]: what the port installs is found by a program outside, which CI builds without LibTorch's
# headers: the installed package has compiled the rest.
stage_vcpkg() {
  pinned_torch 2.11.0
  data_wheels
  FRUGAL_PYARROW=$state/data-wheels/pyarrow cmake -DOUT="$root/build/vcpkg" -P "$root/packaging/vcpkg/check.cmake" >"$state/log/vcpkg.log" 2>&1 ||
    { cat "$state/log/vcpkg.log" >&2 && return 1; }
  count 1 0
  local consumer_target=consumer_headers consumer_tests='without LibTorch'
  [ "${1:-}" != compiled ] || consumer_target='' consumer_tests=''
  consumer "$root/build/package-vcpkg" -DCMAKE_CXX_COMPILER=clang++-19 \
    -DCMAKE_PREFIX_PATH="$root/build/vcpkg/packages/frugal" -DFRUGAL_LIBTORCH="$torch"
}

# The GPU programs: built, linked and started, and each reports that there is no GPU.
stage_cuda() {
  # shellcheck source=tests/gpu/gpu.sh
  . "$root/tests/gpu/gpu.sh"
  cuda_flavour 2.11.0 tests "$root/build/cuda-2.11.0"
  build "$root/build/cuda-2.11.0" cuda_programs test_odr gpu_programs bench_gpu
  run_ctest "$root/build/cuda-2.11.0" --tests-regex '^(cuda|odr): '
  local code=0
  python3 "$root/tests/gpu/run.py" --bin "$root/build/cuda-2.11.0/gpu" \
    --out "$root/build/cuda-2.11.0/results" >&2 || code=$?
  # 77: every program started and found no GPU.
  if [ "$code" = 77 ] || [ "$code" = 0 ]; then count 1 0; else count 0 1; fi
}
# 2.15 was built with a later CUDA, which cannot run here: compiled against its headers.
stage_cuda_objects() {
  # shellcheck source=tests/gpu/gpu.sh
  . "$root/tests/gpu/gpu.sh"
  cuda_flavour 2.15.0 tests "$root/build/cuda-2.15.0"
  build "$root/build/cuda-2.15.0" cuda_objects
  count 1 0
}

# Processor seconds of this shell's children.
cpu_seconds() { awk -v ticks="$(getconf CLK_TCK)" '{ printf "%d", ($16 + $17) / ticks }' "/proc/$BASHPID/stat"; }

# stage NAME FUNCTION [arguments]: runs it in a subshell, so that the next one runs in any case.
stage() {
  local name=$1 begun=$SECONDS counts cpu rc passed failed
  shift
  wanted "$name" || return 0
  say "$name"
  counts=$(mktemp "$state/counts/XXXXXX")
  set +e
  (
    trap 'cpu_seconds >"$counts.cpu"' EXIT
    set -e
    "$@"
  )
  rc=$?
  set -e
  read -r passed failed < <(awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }' "$counts")
  if [ "$rc" != 0 ] && [ "$failed" = 0 ]; then count 0 1 && failed=1; fi
  cpu=$(cat "$counts.cpu" 2>/dev/null || echo 0)
  rm -f "$counts.cpu"
  printf '%-44s %5d passed %3d failed  cpu %5d s  wall %5d s\n' "$name" "$passed" "$failed" \
    "$cpu" "$((SECONDS - begun))" | tee -a "$state/stages"
}

# wanted NAME: true if no words were given, or one of them is in the name.
wanted() {
  local word
  [ ${#only[@]} != 0 ] || return 0
  for word in "${only[@]}"; do
    case $1 in *"$word"*) return 0 ;; esac
  done
  return 1
}

# stages FUNCTION [WORD...]: runs the stages that the function lists, or those whose names contain a
# word.
stages() {
  local list=$1
  shift
  only=("$@")
  mkdir -p "$state/log"
  rm -rf "$state/counts"
  mkdir "$state/counts"
  : >"$state/stages"
  export FRUGAL_FAULT_EVERY=${FRUGAL_FAULT_EVERY:-16}
  # Stages run side by side. LibTorch's threads of several programs wait for one another many times as long as they
  # work: an example of 9 s took 170 s. Tests of threads set their number.
  export OMP_NUM_THREADS=1
  # shellcheck disable=SC2034  # ./dev reads it
  precompile_all=ON
  # The tested version is pinned, whatever LibTorch the caller's environment names.
  unset FRUGAL_LIBTORCH FRUGAL_TORCH_VERSION
  stage "set-up" stage_setup
  "$list"
  say "stages"
  cat "$state/stages"
  awk '{ p += $1; f += $2 } END { printf "%d passed, %d failed\n", p, f; exit f > 0 || p == 0 }' \
    "$state/counts"/*
}

# The stages of CI. Compilers are paired with versions of LibTorch, and no test runs twice alike.
stages_of_ci() {
  stage "format" stage_format
  stage "clang, torch 2.11.0: everything is built" stage_clang
  # Programs that run, Python's and the linker use one core or wait: two lanes, in different folders of the build.
  lane_of_programs &
  local lane=$!  # bash gives $! to process substitutions, too
  stage "g++, torch 2.15.0: interfaces read, cores run" stage_gcc
  stage "address and undefined-behaviour sanitizer" stage_sanitizer asan
  stage "thread sanitizer" stage_sanitizer tsan
  stage "fuzz: every parser" stage_fuzz
  # In half the time of g++, which --release takes, and conan create.
  stage "installed, add_subdirectory, FetchContent" stage_package clang++-19
  stage "conan create" stage_conan
  stage "vcpkg port" stage_vcpkg
  stage "CUDA flavour: link" stage_cuda
  wait "$lane"
}
lane_of_programs() {
  stage "clang, torch 2.11.0: tests" stage_clang_tests
  stage "examples" stage_examples
  stage "spot machines: the files for them" stage_spot
  stage "interop: the files of Python's packages" stage_interop
}

# The stages that CI leaves out: each compiler with the other LibTorch, each built and run, with ten
# times the resumes on changed data, and the benchmarks with each; every header by itself; every fault; the fuzzer for ten
# minutes; every way to install, compiled; clang-tidy.
stages_of_release() {
  local preset
  stages_of_ci
  for preset in tests gcc; do  # clang's, and g++'s
    FRUGAL_RESUME_CASES=10000 \
      stage "$preset, torch 2.11.0: built and run whole" stage_whole "$preset" 2.11.0
    stage "$preset, torch 2.15.0: built and run whole" stage_whole "$preset" 2.15.0
  done
  stage "every header by itself" stage_headers ON
  stage "bare machine: ./dev test in Debian's minimal system" stage_bare
  stage "bare machine: the Dockerfile's steps, and the demo without root" stage_image
  stage "faults: every one" stage_faults
  stage "models: published layouts as compiled steps" stage_models
  FRUGAL_FUZZ_SECONDS=600 stage "fuzz: every parser, ten minutes each" stage_fuzz
  stage "installed, with g++" stage_package g++
  stage "add_subdirectory, compiled" stage_sources add_subdirectory
  stage "FetchContent, compiled" stage_sources FetchContent
  stage "vcpkg port, compiled" stage_vcpkg compiled
  stage "CUDA flavour: compiled with the newer LibTorch" stage_cuda_objects
  stage "clang-tidy" stage_tidy
}

all_stages() { stages stages_of_ci "$@"; }
release_stages() { stages stages_of_release "$@"; }
