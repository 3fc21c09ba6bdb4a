// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace frugal::detail {

/// A file that the first process of a run writes into the run's folder, and the others look for: whether
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
#include <frugal/policy/checkpoint/seen_file.ipp>
#endif
