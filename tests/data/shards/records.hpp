// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/safetensors_writer.hpp>
#include <frugal/data/little_endian.hpp>
#include <frugal/data/shards/record_layout.hpp>
#include <frugal/data/shards/shard_files.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
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

/// Three bytes and an int64.
inline frugal::RecordLayout small_layout() {
  return layout_of({{.name = "data", .dtype = frugal::Dtype::u8, .shape = {3}},
                    {.name = "target", .dtype = frugal::Dtype::i64, .shape = {}}});
}

/// Adds record i: three times the digit of i, and the number i.
inline void add_small(frugal::ShardFiles& files, std::int64_t i) {
  std::string const data(3, static_cast<char>('0' + i % 10));
  std::vector<std::span<std::byte const>> const fields{bytes_of(data),
                                                       std::as_bytes(std::span(&i, 1))};
  files.add(fields);
}

/// Whether a record of a RecordFile or RecordFolder is record i.
template <class Records>
bool is_small(Records const& records, std::uint64_t record, std::int64_t i) {
  std::string const data(3, static_cast<char>('0' + i % 10));
  return text_of(records.get(record)) == data && records.get(record, 1).size() == 8 &&
         frugal::detail::load_le<std::int64_t>(records.get(record, 1), 0) == i;
}

/// Writes one file, of the records that `add(files)` adds.
template <class Add>
frugal::ShardList::Shard write_file(std::filesystem::path const& path, frugal::RecordLayout layout,
                                    std::uint64_t block_bytes, Add&& add) {
  std::filesystem::path const folder = path.string() + ".folder";
  frugal::ShardFiles files(folder, {.bytes_per_shard = 0, .block_bytes = block_bytes},
                           std::move(layout));
  add(files);
  auto const shard = files.close().shards.at(0);
  std::filesystem::rename(folder / shard.name, path);
  std::filesystem::remove_all(folder);
  return shard;
}

/// `count` small records in blocks of 16 bytes, so that rows of "data" cross their borders. The
/// file ends with the numbers, and then the bytes.
inline frugal::ShardList::Shard write_small(std::filesystem::path const& path, std::int64_t count,
                                            std::int64_t first = 0) {
  return write_file(path, small_layout(), 16, [&](frugal::ShardFiles& files) {
    for (std::int64_t i = first; i < first + count; ++i) add_small(files, i);
  });
}

/// Adds a record of any bytes.
inline void add_bytes(frugal::ShardFiles& files, std::string_view text) {
  auto const bytes = bytes_of(text);
  files.add(std::span(&bytes, 1));
}

/// A safetensors file as any program writes it; with the hashes and the metadata of a shard, the
/// last hash is made right.
inline std::vector<std::byte> file_of(std::vector<frugal::TensorView> const& tensors,
                                      frugal::SafetensorsWriter::Metadata const& metadata = {}) {
  struct Sink {
    void write(std::span<std::byte const> more) { frugal::detail::append_bytes(bytes, more); }
    std::vector<std::byte> bytes;
  } sink;
  frugal::SafetensorsWriter const writer(tensors, metadata);
  writer.write(sink);
  if (metadata.empty()) return sink.bytes;
  // The widest type comes first.
  std::size_t const header = writer.header().size();
  for (frugal::TensorView const& tensor : tensors) {
    if (tensor.name != "frugal.block_hashes" || tensor.bytes.size() < 8) continue;
    auto const bytes = std::span<std::byte const>(sink.bytes);
    std::uint64_t const hash = frugal::detail::record_file_hash(
        bytes.first(header), bytes.subspan(header, tensor.bytes.size()));
    std::memcpy(sink.bytes.data() + header + tensor.bytes.size() - 8, &hash, 8);
  }
  return sink.bytes;
}

}  // namespace frugal_test::records
