// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <iostream>
#include <ostream>
#include <string>

namespace frugal::detail {

/// Waits for other workers, a little longer each time, and says once for which.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds until_said = std::chrono::minutes(1),
                    std::ostream& out = std::cerr)
      : until_said_(until_said), out_(&out) {}

  void wait(std::string const& for_what);

 private:
  std::chrono::milliseconds until_said_;
  std::ostream* out_;
  std::chrono::milliseconds pause_{20}, waited_{0};
  bool said_ = false;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/patience.ipp>
#endif
