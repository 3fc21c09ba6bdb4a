// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file_id.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <cstdint>

namespace frugal::detail {

/// What distinguishes a file from another one of its name, and from its own later content.
struct FileStamp {
  FileId id{};
  std::uint64_t size = 0;     ///< in bytes
  std::int64_t modified = 0;  ///< when its content changed, in nanoseconds since 1970
  std::int64_t changed = 0;   ///< when content, name, mode or owner changed: no program can set it

  bool operator==(FileStamp const&) const = default;

  FRUGAL_INLINE static FileStamp of(struct stat const& status) {
    auto const nanoseconds = [](timespec const& time) {
      return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    };
    return {.id = FileId::of(status),
            .size = static_cast<std::uint64_t>(status.st_size),
            .modified = nanoseconds(status.st_mtim),
            .changed = nanoseconds(status.st_ctim)};
  }
};

}  // namespace frugal::detail
