// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/permissions.hpp>

#include <frugal/inline.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE std::filesystem::path nearest_existing(std::filesystem::path path) {
  std::error_code failure;
  std::filesystem::path at = std::filesystem::absolute(path, failure).lexically_normal();
  if (failure) return path;
  if (!at.has_filename()) at = at.parent_path();  // a slash at the end
  struct stat status{};
  while (::stat(at.c_str(), &status) != 0 && at != at.parent_path()) at = at.parent_path();
  return at;
}

FRUGAL_INLINE std::string permissions_text(std::filesystem::path const& path) {
  std::filesystem::path const found = nearest_existing(path);
  struct stat status{};
  if (::stat(found.c_str(), &status) != 0) return {};
  std::array<char, 120> text{};
  std::snprintf(text.data(), text.size(),
                " has owner %u, group %u and mode %o, and this process runs as user %u",
                static_cast<unsigned>(status.st_uid), static_cast<unsigned>(status.st_gid),
                static_cast<unsigned>(status.st_mode) & 07777U, static_cast<unsigned>(::geteuid()));
  return "'" + found.string() + "'" + text.data();
}

}  // namespace frugal::detail
