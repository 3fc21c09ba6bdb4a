// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/store/file.hpp>
#include <frugal/store/folder.hpp>
#include <frugal/store/mapped_file.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace frugal::detail {

/// Writes a file under another name and then renames it: a reader sees the old file or the new one.
inline void write_whole_file(std::filesystem::path const& path, std::string_view text) {
  std::filesystem::path written = path;
  written += ".new";
  remove_tree(written);  // of a process that was killed
  File file = File::create(written);
  file.write(std::as_bytes(std::span(text)));
  file.sync();
  file.close();
  rename_path(written, path);
}

inline std::string read_whole_file(std::filesystem::path const& path) {
  MappedFile const file(path);
  return {reinterpret_cast<char const*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace frugal::detail
