// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/descriptor.hpp>
#include <frugal/checkpoint/run_file.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

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

/// A file that the first process of a run writes into the run directory, and the others look for: whether
/// they see one folder. Removed with this object.
class SeenFile {
 public:
  explicit SeenFile(std::filesystem::path const& folder);
  SeenFile(SeenFile const&) = delete;
  SeenFile& operator=(SeenFile const&) = delete;
  ~SeenFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  /// For the others; empty if the file could not be written.
  std::string const& text() const { return text_; }

  /// Whether another process sees it, which has got text(). A file system of several machines may show a
  /// new file late.
  static bool is_seen(std::filesystem::path const& folder, std::string const& text, int tries = 20);

 private:
  std::filesystem::path path_;
  std::string text_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/marks.ipp>
#endif
