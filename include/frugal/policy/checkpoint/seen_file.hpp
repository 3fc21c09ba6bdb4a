// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

#include <frugal/base/whole_file.hpp>
#include <frugal/checkpoint/commit.hpp>
#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// A file that the first process of a run writes into the run's folder, and the others look for: whether
/// they see one folder. Removed with this object.
class SeenFile {
 public:
  FRUGAL_INLINE explicit SeenFile(std::filesystem::path const& folder)
      : path_(folder / temporary_name("seen")) {
    std::string const owner = LockOwner::here().text();
    try {
      write_whole_file(path_, owner, Durable::no);
      text_ = path_.filename().string() + '\n' + owner;
    } catch (StoreError const&) {
      // The first save will say why.
    }
  }
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
  FRUGAL_INLINE static bool is_seen(std::filesystem::path const& folder, std::string const& text,
                                    int tries = 20) {
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

 private:
  std::filesystem::path path_;
  std::string text_;
};

}  // namespace frugal::detail
