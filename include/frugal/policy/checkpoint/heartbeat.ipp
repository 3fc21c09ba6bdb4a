// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/heartbeat.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <limits>
#include <string>

namespace frugal::detail {

FRUGAL_INLINE void Heartbeat::beat(Beat now) const {
  if (!descriptor_) return;
  auto const wide = [](std::string number) {
    return std::string(number.size() < 20 ? 20 - number.size() : 0, '0') + number;
  };
  std::string const text =
      "step " + wide(std::to_string(now.step)) + " seconds " + wide(fixed(now.seconds, 6)) + "\n";
  // One write of one length at one place: a reader sees the last or the one before it.
  if (::pwrite(descriptor_.get(), text.data(), text.size(), 0) < 0) return;
}

FRUGAL_INLINE std::optional<Heartbeat::Beat> Heartbeat::parse(std::string_view text) {
  constexpr std::string_view before_step = "step ", before_seconds = " seconds ";
  Beat last;
  if (!take(text, before_step) || !take(text, last.step) || !take(text, before_seconds) ||
      !take(text, last.seconds) || text != "\n") {
    return std::nullopt;
  }
  // No run has so many steps: do not report the difference to a checkpoint's as a fact.
  bool const sound = last.step <= std::uint64_t{std::numeric_limits<std::int64_t>::max()} &&
                     std::isfinite(last.seconds) && last.seconds >= 0;
  return sound ? std::optional(last) : std::nullopt;
}

FRUGAL_INLINE bool Heartbeat::take(std::string_view& text, std::string_view words) {
  if (!text.starts_with(words)) return false;
  text.remove_prefix(words.size());
  return true;
}

}  // namespace frugal::detail
