// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/record_layout.hpp>
#include <frugal/data/shards/record_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal_test::records {

inline std::span<std::byte const> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string text_of(std::span<std::byte const> bytes) {
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

inline std::vector<std::byte> file_bytes(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  auto const bytes = bytes_of(text.view());
  return {bytes.begin(), bytes.end()};
}
inline void put_bytes(std::filesystem::path const& path, std::span<std::byte const> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<char const*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline frugal::RecordLayout layout_of(std::vector<frugal::RecordField> fields) {
  std::string why;
  return frugal::RecordLayout::of(std::move(fields), why).value();
}

/// Three bytes and an int64: 16 bytes a record, of which 5 are padding.
inline frugal::RecordLayout small_layout() {
  return layout_of({{.name = "data", .dtype = frugal::Dtype::u8, .shape = {3}},
                    {.name = "target", .dtype = frugal::Dtype::i64, .shape = {}}});
}

/// Record i: the bytes "iii" of the digit, and the number i.
inline std::vector<std::byte> small_record(std::int64_t i) {
  std::vector<std::byte> record(16);
  for (std::size_t k = 0; k < 3; ++k) record[k] = static_cast<std::byte>('0' + i % 10);
  for (std::size_t k = 0; k < 8; ++k) record[8 + k] = static_cast<std::byte>(i >> (8 * k));
  return record;
}

/// `count` of them in blocks of 40 bytes, so that records cross their borders.
inline void write_small(std::filesystem::path const& path, std::int64_t count,
                        std::int64_t first = 0) {
  frugal::RecordWriter writer(path, small_layout(), 40);
  for (std::int64_t i = first; i < first + count; ++i) writer.add(small_record(i));
  static_cast<void>(writer.close());
}

}  // namespace frugal_test::records
