// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

// Details of a permission error: the file or folder that refuses, its owner, and the caller.
namespace frugal::detail {

/// The path, or the closest folder above it that exists and can be seen.
std::filesystem::path nearest_existing(std::filesystem::path path);

/// "'/data' has owner 0, group 0 and mode 755, and this process runs as user 1000". Numbers, since
/// asking for names may wait for a server.
std::string permissions_text(std::filesystem::path const& path);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/permissions.ipp>
#endif
