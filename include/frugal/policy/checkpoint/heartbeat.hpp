// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <frugal/base/descriptor.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/checkpoint/run_file.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// The progress of a run: the file `heartbeat` of its folder, written about twice a second. After a
/// kill it tells how far the run was beyond its last checkpoint, so that the next start can report
/// the loss. Nothing else depends on it: a failure to write it is ignored, and it is not fsynced.
class Heartbeat {
 public:
  struct Beat {
    std::uint64_t step = 0;  ///< optimizer steps
    double seconds = 0;      ///< of training
  };

  Heartbeat() = default;
  explicit Heartbeat(std::filesystem::path const& path)
      : descriptor_(open_run_file(path, O_WRONLY | O_CREAT)) {}

  /// If not, errno says why, after the construction.
  bool open() const { return static_cast<bool>(descriptor_); }

  FRUGAL_INLINE void beat(Beat now) const {
    if (!descriptor_) return;
    auto const wide = [](std::string number) {
      return std::string(number.size() < 20 ? 20 - number.size() : 0, '0') + number;
    };
    std::string const text =
        "step " + wide(std::to_string(now.step)) + " seconds " + wide(fixed(now.seconds, 6)) + "\n";
    // One write of one length at one place: a reader sees the last or the one before it.
    if (::pwrite(descriptor_.get(), text.data(), text.size(), 0) < 0) return;
  }

  /// Nothing where there is none, or none that beat() could have written.
  static std::optional<Beat> read(std::filesystem::path const& path) {
    return parse(read_run_file(path, 64));
  }

 private:
  FRUGAL_INLINE static std::optional<Beat> parse(std::string_view text) {
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
  FRUGAL_INLINE static bool take(std::string_view& text, std::string_view words) {
    if (!text.starts_with(words)) return false;
    text.remove_prefix(words.size());
    return true;
  }
  template <class Number>
  static bool take(std::string_view& text, Number& number) {
    auto const [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    return error == std::errc();
  }

  Descriptor descriptor_;
};

}  // namespace frugal::detail
