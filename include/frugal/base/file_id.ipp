// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file_id.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::optional<FileId> FileId::of(std::filesystem::path const& path) noexcept {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
  return of(status);
}

FRUGAL_INLINE FileStamp FileStamp::of(struct stat const& status) {
  auto const nanoseconds = [](timespec const& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {.id = FileId::of(status),
          .size = static_cast<std::uint64_t>(status.st_size),
          .modified = nanoseconds(status.st_mtim),
          .changed = nanoseconds(status.st_ctim)};
}

}  // namespace frugal::detail
