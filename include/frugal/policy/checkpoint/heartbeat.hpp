// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include <frugal/base/descriptor.hpp>
#include <frugal/checkpoint/run_file.hpp>

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

  void beat(Beat now) const;

  /// Nothing where there is none, or none that beat() could have written.
  static std::optional<Beat> read(std::filesystem::path const& path) {
    return parse(read_run_file(path, 64));
  }

 private:
  static std::optional<Beat> parse(std::string_view text);
  static bool take(std::string_view& text, std::string_view words);
  template <class Number>
  static bool take(std::string_view& text, Number& number) {
    auto const [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    return error == std::errc();
  }

  Descriptor descriptor_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/heartbeat.ipp>
#endif
