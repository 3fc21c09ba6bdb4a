// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string_view>

#include <frugal/base/sigpipe_guard.hpp>
#include <frugal/inline.hpp>

namespace frugal::watch {

/// Writes a text and flushes it, so that a kill loses none of it. False with the reason in errno if
/// that fails. A pipe whose reader has gone (`program 2>&1 | head`) is EPIPE, without a SIGPIPE: a
/// closed terminal does not end a run.
FRUGAL_INLINE bool write_text(std::FILE* out, std::string_view text) {
  frugal::detail::SigpipeGuard const quiet;
  bool const whole = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  return std::fflush(out) == 0 && whole;
}

}  // namespace frugal::watch
