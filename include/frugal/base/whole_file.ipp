// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/whole_file.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/mapped_file.hpp>
#include <frugal/inline.hpp>

#include <span>
#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE void write_whole_file(std::filesystem::path const& path, std::string_view text,
                                    Durable durable) {
  std::filesystem::path written = path;
  written += ".new";
  std::error_code ignored;
  std::filesystem::remove(written, ignored);  // of a process that was killed
  try {
    File file = File::create(written);
    file.write(std::as_bytes(std::span(text)));
    if (durable == Durable::yes) file.sync();
    file.close();
    rename_path(written, path);
  } catch (...) {
    std::filesystem::remove(written, ignored);
    throw;
  }
}

FRUGAL_INLINE std::string read_whole_file(std::filesystem::path const& path) {
  MappedFile const file(path);
  return {reinterpret_cast<char const*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace frugal::detail
