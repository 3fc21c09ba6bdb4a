// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <frugal/store/file.hpp>
#include <frugal/store/folder.hpp>

namespace frugal::detail {

/// Writes or replaces a file. A reader sees the old text or the new one. StoreError.
inline void write_text(std::filesystem::path const& path, std::string_view text) {
  std::filesystem::path partial = path;
  partial += ".partial";
  std::error_code ignored;
  std::filesystem::remove(partial, ignored);  // left by a crash
  File file = File::create(partial);
  file.write(std::as_bytes(std::span(text.data(), text.size())));
  file.close();
  rename_path(partial, path);
}

}  // namespace frugal::detail
