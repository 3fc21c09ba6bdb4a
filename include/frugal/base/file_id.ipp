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

}  // namespace frugal::detail
