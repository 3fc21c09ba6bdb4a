// SPDX-License-Identifier: Apache-2.0
// The main of every program of tests/gpu: without a GPU nothing is tested, and nothing passes.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <c10/cuda/CUDAFunctions.h>

#include "../support/at_start.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  constexpr int not_run = 77;
  // A process that has used CUDA cannot be forked.
  for (auto* const each : frugal_test::support::at_start()) each();
  if (c10::cuda::device_count() == 0) {
    std::puts("no GPU found");
    return not_run;
  }
  doctest::Context context(argc, argv);
  int const code = context.run();
  if (code == 0 && !context.shouldExit()) std::puts("\nall cases ran");
  return code;
}
