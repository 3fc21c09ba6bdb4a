// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <iostream>
#include <ostream>
#include <string>
#include <thread>
#include <utility>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// Waits for other workers, a little longer each time, and says once for which.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds until_said = std::chrono::minutes(1),
                    std::ostream& out = std::cerr)
      : until_said_(until_said), out_(&out) {}

  FRUGAL_INLINE void wait(std::string const& for_what) {
    std::this_thread::sleep_for(pause_);
    waited_ += pause_;
    pause_ = std::min(pause_ * 2, std::chrono::milliseconds(1000));
    if (waited_ < until_said_ || std::exchange(said_, true)) return;
    *out_ << "frugal: the search waits for another worker. If that one is gone: " << for_what
          << std::endl;
  }

 private:
  std::chrono::milliseconds until_said_;
  std::ostream* out_;
  std::chrono::milliseconds pause_{20}, waited_{0};
  bool said_ = false;
};

}  // namespace frugal::detail
