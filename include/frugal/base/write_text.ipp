// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/write_text.hpp>

#include <frugal/base/sigpipe_guard.hpp>
#include <frugal/inline.hpp>

namespace frugal::watch {

FRUGAL_INLINE bool write_text(std::FILE* out, std::string_view text) {
  frugal::detail::SigpipeGuard const quiet;
  bool const whole = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  return std::fflush(out) == 0 && whole;
}

}  // namespace frugal::watch
