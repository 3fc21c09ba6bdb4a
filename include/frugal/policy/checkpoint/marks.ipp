// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/marks.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/checkpoint/commit.hpp>
#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

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

FRUGAL_INLINE SeenFile::SeenFile(std::filesystem::path const& folder)
    : path_(folder / temporary_name("seen")) {
  std::string const owner = LockOwner::here().text();
  try {
    write_whole_file(path_, owner, Durable::no);
    text_ = path_.filename().string() + '\n' + owner;
  } catch (StoreError const&) {
    // The first save will say why.
  }
}

FRUGAL_INLINE bool SeenFile::is_seen(std::filesystem::path const& folder, std::string const& text,
                                     int tries) {
  if (text.empty()) return true;  // nobody can
  std::size_t const end = text.find('\n');
  std::filesystem::path const name = text.substr(0, end);
  if (end == std::string::npos || name.filename() != name) return false;
  for (int i = 0; i < tries; ++i) {
    if (i != 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    try {
      if (read_whole_file(folder / name) == text.substr(end + 1)) return true;
    } catch (StoreError const&) {
      continue;
    }
  }
  return false;
}

}  // namespace frugal::detail
