// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file_id.hpp>

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

  static FileStamp of(struct stat const& status);
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/file_stamp.ipp>
#endif
