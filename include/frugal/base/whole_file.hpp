// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace frugal::detail {

/// Whether a file survives a crash of the machine: an fsync, which may take a second on a busy
/// disk.
enum class Durable : bool { no, yes };

/// Writes or replaces a file: a reader sees the old text or the new one, also after a failure,
/// which leaves nothing next to it. StoreError.
void write_whole_file(std::filesystem::path const& path, std::string_view text, Durable durable);

std::string read_whole_file(std::filesystem::path const& path);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/whole_file.ipp>
#endif
