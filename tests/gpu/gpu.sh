# SPDX-License-Identifier: Apache-2.0
# Sourced by ./dev: what goes to a machine with a GPU, and what is done there.
# shellcheck shell=bash
# shellcheck disable=SC2154  # root, state, torch and the packages are ./dev's

# cuda_flavour VERSION PRESET FOLDER: configures against a tree of LibTorch's and CUDA's wheels,
# because libtorch_cuda finds the latter next to its own folder. Hard links: neither is stored
# twice.
cuda_flavour() {
  pinned_wheels "$state/cuda-2.11.0" cuda.txt 6000
  pinned_torch "$1"
  local cuda=$state/cuda-$1
  if [ "$1" != 2.11.0 ]; then
    rm -rf "$cuda"
    mkdir "$cuda"
    cp -al "$state/cuda-2.11.0/nvidia" "$cuda"
  fi
  rm -rf "$cuda/torch"
  mkdir "$cuda/torch"
  cp -al "$torch/include" "$torch/lib" "$cuda/torch"
  configure "$2" "$3" -DFRUGAL_LIBTORCH="$cuda" -DFRUGAL_CUDA=ON \
    -DFRUGAL_BUILD_BENCH=ON -DFRUGAL_BUILD_EXAMPLES=OFF
}

# gpu_pack FILE: runs here, without a GPU.
gpu_pack() {
  [ $# = 1 ] || die "gpu pack needs a file: ./dev gpu pack frugal-gpu.tar.gz"
  need_packages "${basic_packages[@]}" "${test_packages[@]}" binutils git
  cuda_flavour 2.11.0 tests "$root/build/cuda-2.11.0"
  build "$root/build/cuda-2.11.0" gpu_programs
  # Benchmarks are optimised.
  cuda_flavour 2.11.0 release "$root/build/gpu-release"
  build "$root/build/gpu-release" bench_gpu
  python3 "$root/tests/gpu/pack.py" --tests "$root/build/cuda-2.11.0/gpu" \
    --bench "$root/build/gpu-release/gpu" "$1"
}

# Runs there: builds against the machine's own torch, with the contents of the archive, offline.
gpu_build() {
  local tool log=$root/build/gpu/configure.log
  for tool in cmake ninja g++ python3; do
    command -v "$tool" >/dev/null || die "gpu build needs $tool, which is not here."
  done
  need_torch
  mkdir -p "$root/build/gpu"
  rm -f "$root/build/gpu/.whole"
  # FRUGAL_BUILD_TESTS would require libarchive and libcurl, which no program here needs.
  cmake -S "$root" -B "$root/build/gpu" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" -DCMAKE_PREFIX_PATH="$root/gpu/sysroot/usr" \
    -DFRUGAL_CUDA=ON -DFRUGAL_LIBTORCH="$torch" -DFRUGAL_BUILD_EXAMPLES=OFF \
    -DFRUGAL_ARCHIVE=OFF -DFRUGAL_NOTICES=OFF -DFRUGAL_CLUSTER=ON >"$log" 2>&1 ||
    { cat "$log" >&2 && die "configuring build/gpu failed; the output is above."; }
  build "$root/build/gpu" gpu_programs bench_gpu
  touch "$root/build/gpu/.whole"
}

# Sets `binaries` to the folder of the programs, and LD_LIBRARY_PATH to the libraries they need.
gpu_ready() {
  need_torch
  local version
  version=$(sed -n "s/^__version__ = '\([0-9]*\.[0-9]*\).*/\1/p" "$torch/version.py" 2>/dev/null)
  # A failed build leaves some programs, and no stamp.
  if [ -e "$root/build/gpu/.whole" ]; then
    binaries=$root/build/gpu/gpu
  elif [ -d "$root/gpu/bin" ]; then
    binaries=$root/gpu/bin
    [ "$version" = 2.11 ] ||
      die "the packed programs are for LibTorch 2.11, and here is ${version:-another}. Build them here: ./dev gpu build"
  else
    gpu_build
    binaries=$root/build/gpu/gpu
  fi
  local path=$torch/lib folder library known
  for folder in "$torch"/../nvidia/*/lib; do [ ! -d "$folder" ] || path=$path:$folder; done
  # Only libraries that the machine lacks: others may depend on its own versions.
  mkdir -p "$state/gpu-lib"
  known=$(ldconfig -p 2>/dev/null) || known=
  for library in "$root"/gpu/lib/*; do
    [ -e "$library" ] || continue
    [[ $known == *"${library##*/} "* ]] || ln -sf "$library" "$state/gpu-lib/"
  done
  export LD_LIBRARY_PATH=$path:$state/gpu-lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  # The first program reads LibTorch's libraries from the disk: this must not count in a case's
  # limit.
  timeout 120 "$binaries/bench_gpu" --info >/dev/null 2>&1 || true
}

gpu_test() {
  gpu_ready
  exec python3 "$root/tests/gpu/run.py" --bin "$binaries" --out "$root/build/gpu-results" "$@"
}

gpu_bench() {
  gpu_ready
  mkdir -p "$root/build/gpu-results"
  exec python3 "$root/bench/gpu.py" --bin "$binaries" --out "$root/build/gpu-results/bench.json" "$@"
}
