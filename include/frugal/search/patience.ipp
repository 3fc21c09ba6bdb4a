// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/patience.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void Patience::wait(std::string const& for_what) {
  std::this_thread::sleep_for(pause_);
  waited_ += pause_;
  pause_ = std::min(pause_ * 2, std::chrono::milliseconds(1000));
  if (waited_ < until_said_ || std::exchange(said_, true)) return;
  *out_ << "frugal: the search waits for another worker. If that one is gone: " << for_what
        << std::endl;
}

}  // namespace frugal::detail
