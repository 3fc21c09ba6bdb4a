// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/file.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Files that are read at any place, by several threads at the same time. At most `most` are open
/// between reads: sets may have more shards than a process may have files.
///
/// A read throws a DataError where the file is gone or shorter than it was.
class OpenFiles {
 public:
  static constexpr std::size_t usual = 256;

  explicit OpenFiles(std::vector<std::filesystem::path> paths, std::size_t most = usual)
      : paths_(std::move(paths)), open_(paths_.size()), most_(std::max<std::size_t>(most, 1)) {}

  std::size_t size() const { return paths_.size(); }
  std::filesystem::path const& path(std::size_t which) const { return paths_[which]; }

  /// Fills `out` with the bytes from `offset` on.
  void read(std::size_t which, std::uint64_t offset, std::span<char> out) const {
    std::shared_ptr<File const> const file = at(which);
    while (!out.empty()) {
      ssize_t const got =
          ::pread(file->descriptor(), out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(which, offset, io_error("pread", file->path(), errno).fault().why);
      if (got == 0) fail(which, offset, "the file has become shorter since it was opened");
      offset += static_cast<std::uint64_t>(got);
      out = out.subspan(static_cast<std::size_t>(got));
    }
  }

 private:
  std::shared_ptr<File const> at(std::size_t which) const {
    std::lock_guard const lock(mutex_);
    if (open_[which]) return open_[which];
    try {
      open_[which] = std::make_shared<File const>(File::open(paths_[which]));
    } catch (IoError const& error) {
      fail(which, 0, error.fault().why);
    }
    order_.push_back(which);
    std::shared_ptr<File const> out = open_[which];
    // The oldest is closed as soon as it is not being read.
    if (order_.size() > most_) {
      open_[order_.front()].reset();
      order_.pop_front();
    }
    return out;
  }

  [[noreturn]] void fail(std::size_t which, std::uint64_t offset, std::string why) const {
    throw DataError({.what = "a shard cannot be read",
                     .where = paths_[which].string() + ", byte " + std::to_string(offset),
                     .why = std::move(why),
                     .fix = "Do not change or move shards while they are read."});
  }

  std::vector<std::filesystem::path> paths_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<File const>> open_;
  mutable std::deque<std::size_t> order_;  // in which the open ones were opened
  std::size_t most_;
};

}  // namespace frugal::detail
