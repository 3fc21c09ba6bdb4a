// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/data/shards/open_files.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
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

/// A file as AvroInput, open while it is read alone. DataError if there is no such file; IoError if
/// it cannot be opened now. Reads throw ChangedError for a file that has changed since.
inline AvroInput avro_file(std::filesystem::path const& path) {
  PooledFile file = table_file(path, "Give the path of a readable Avro file.");
  std::uint64_t const size = file.size();
  auto read = [file = std::move(file)](std::uint64_t offset, std::size_t wanted) {
    std::string bytes(wanted, '\0');
    bytes.resize(file.read_some(offset, bytes));
    return bytes;
  };
  return {.name = path.string(), .size = size, .read = std::move(read)};
}

}  // namespace frugal::detail
