// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace frugal_test::support {

/// Functions that a test program calls before its first case, while it has one thread and has not used LibTorch.
inline std::vector<void (*)()>& at_start() {
  static std::vector<void (*)()> all;
  return all;
}

}  // namespace frugal_test::support
