// SPDX-License-Identifier: Apache-2.0
// The main of tests/gpu. Called as gpu_NAME it runs the cases of NAME.cpp. Without a GPU nothing is tested, and
// nothing passes.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <c10/cuda/CUDAFunctions.h>

#include "../support/at_start.hpp"

#include <cstdio>
#include <string>
#include <string_view>

int main(int argc, char** argv) {
  constexpr int not_run = 77;
  // A process that has used CUDA cannot be forked.
  for (auto* const each : frugal_test::support::at_start()) each();
  if (c10::cuda::device_count() == 0) {
    std::puts("no GPU found");
    return not_run;
  }
  doctest::Context context(argc, argv);
  std::string_view called = argv[0];
  called.remove_prefix(called.rfind('/') + 1);
  if (called != "gpu_tests" && called.starts_with("gpu_")) {
    std::string const file = "*/gpu/" + std::string(called.substr(4)) + ".cpp";
    context.addFilter("source-file", file.c_str());
  }
  int const code = context.run();
  if (code == 0 && !context.shouldExit()) std::puts("\nall cases ran");
  return code;
}
