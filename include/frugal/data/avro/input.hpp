// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/file.hpp>
#include <frugal/store/io_error.hpp>

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace frugal::detail {

/// Bytes that are read at any place: a file, or memory in tests. Safe to use from several threads.
struct AvroInput {
  std::string name;
  std::uint64_t size = 0;
  /// The bytes [offset, offset + size), fewer at the end.
  std::function<std::string(std::uint64_t offset, std::size_t size)> read = {};
};

/// A file as AvroInput. DataError if it cannot be opened.
inline AvroInput avro_file(std::filesystem::path const& path) {
  try {
    auto file = std::make_shared<File>(File::open(path));
    std::uint64_t const size = file->size();
    auto read = [file](std::uint64_t offset, std::size_t wanted) {
      std::string bytes(wanted, '\0');
      std::size_t got = 0;
      while (got < wanted) {
        ssize_t const some = ::pread(file->descriptor(), bytes.data() + got, wanted - got,
                                     static_cast<off_t>(offset + got));
        if (some < 0 && errno == EINTR) continue;
        if (some < 0) throw io_error("pread", file->path(), errno);
        if (some == 0) break;
        got += static_cast<std::size_t>(some);
      }
      bytes.resize(got);
      return bytes;
    };
    return {.name = path.string(), .size = size, .read = std::move(read)};
  } catch (StoreError const& error) {
    throw DataError({.what = "the file cannot be opened",
                     .where = path.string(),
                     .why = error.fault().why,
                     .fix = "Give the path of a readable Avro file."});
  }
}

}  // namespace frugal::detail
