// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/data/avro/codec.hpp>
#include <frugal/data/avro/decoder.hpp>
#include <frugal/data/shards/open_files.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// What an Avro container file says before its blocks.
struct AvroHeader {
  std::string schema;
  AvroCodec codec = AvroCodec::null;
  std::string sync;         ///< the 16 bytes after every block
  std::uint64_t bytes = 0;  ///< of the header
};

/// A block of rows in a container file.
struct AvroBlock {
  std::uint64_t rows = 0;
  std::uint64_t offset = 0;  ///< of its bytes in the file
  std::uint64_t bytes = 0;   ///< as stored
};

/// The header at the beginning of `bytes`. DataError with file and byte for a file that has none.
inline AvroHeader avro_header_in(std::string const& bytes, std::string const& name) {
  if (!std::string_view(bytes).starts_with("Obj\1")) {
    throw DataError({.what = "this is no Avro container file",
                     .where = name + ", byte 0",
                     .why = bytes.empty() ? "it is empty" : "it does not begin with \"Obj\" and 1",
                     .fix = "Give a file that an Avro writer made."});
  }
  AvroDecoder decoder(bytes, name);
  static_cast<void>(decoder.take(4));
  AvroHeader header;
  bool has_schema = false;
  std::string codec = "null";
  decoder.items(false, [&] {
    std::string_view const key = decoder.take(decoder.length());
    std::string_view const value = decoder.take(decoder.length());
    if (key == "avro.schema") {
      header.schema = value;
      has_schema = true;
    } else if (key == "avro.codec") {
      codec = value;
    }
  });
  if (!has_schema) decoder.fail("the header has no schema", "there is no avro.schema in it");
  auto const known = codec_of(codec);
  if (!known) {
    throw DataError({.what = "the codec of the file is not read",
                     .where = name,
                     .why = "it is " + codec.substr(0, 40),
                     .fix = "Write the file with null, deflate or zstandard."});
  }
  header.codec = *known;
  header.sync = decoder.take(16);
  header.bytes = decoder.offset();
  return header;
}

/// Reads the header.
///
/// Source  Apache Avro 1.11.1 specification, "Object container files".
inline AvroHeader avro_header(AvroInput const& input) {
  constexpr std::uint64_t usual = std::uint64_t{64} << 10;
  constexpr std::uint64_t most = std::uint64_t{16} << 20;  // no schema is longer
  if (input.size > usual) {
    try {
      return avro_header_in(input.read(0, usual), input.name);
    } catch (DataError const&) {  // it may be longer
    }
  }
  return avro_header_in(
      input.read(0, static_cast<std::size_t>(std::min<std::uint64_t>(input.size, most))),
      input.name);
}

/// Finds the blocks, from header to header, and reads none of them.
///
/// Errors  DataError for a block that is cut off, impossible, or not followed by the sync marker.
///         `blocks` has those before it by then.
inline void avro_blocks(AvroInput const& input, AvroHeader const& header,
                        std::vector<AvroBlock>& blocks) {
  constexpr std::size_t longest = 20;  // two integers
  std::uint64_t rows = 0;
  for (std::uint64_t at = header.bytes; at < input.size;) {
    std::string const where =
        input.name + ", block " + std::to_string(blocks.size()) + " at byte " + std::to_string(at);
    std::string const head = input.read(at, longest);
    AvroDecoder decoder(head, where);
    AvroBlock block;
    block.rows = decoder.length();
    block.bytes = decoder.length();
    block.offset = at + decoder.offset();
    if (block.rows > std::uint64_t{1} << 40 || rows > std::uint64_t{1} << 60 ||
        (header.codec == AvroCodec::null && block.rows > block.bytes)) {
      decoder.fail("a block claims too many rows", std::to_string(block.rows) + " rows in " +
                                                       std::to_string(block.bytes) + " bytes");
    }
    std::uint64_t const left = input.size - block.offset;
    if (left < 16 || block.bytes > left - 16) {
      decoder.fail("the file is cut off", "the block and its sync marker take " +
                                              std::to_string(block.bytes) + " + 16 bytes, and " +
                                              std::to_string(left) + " are left");
    }
    at = block.offset + block.bytes + 16;
    if (input.read(at - 16, 16) != header.sync) {
      decoder.fail("a block is not followed by the file's sync marker", "");
    }
    rows += block.rows;
    if (block.rows > 0) blocks.push_back(block);
  }
}

/// Rows of a block that was decompressed: each is decoded where it begins.
class AvroRows {
 public:
  /// Finds where each row begins. DataError if they do not fill the block exactly.
  AvroRows(std::string bytes, std::uint64_t rows, AvroType const& type, std::string where)
      : bytes_(std::move(bytes)), where_(std::move(where)) {
    AvroDecoder decoder(bytes_, where_);
    if (rows > bytes_.size()) decoder.fail("a block has fewer bytes than rows", "");
    begins_.reserve(static_cast<std::size_t>(rows));
    for (std::uint64_t row = 0; row < rows; ++row) {
      begins_.push_back(decoder.offset());
      decoder.skip(type);
    }
    if (!decoder.at_end()) {
      decoder.fail("a block has bytes after its last row",
                   std::to_string(bytes_.size() - decoder.offset()) + " of them");
    }
  }

  std::uint64_t bytes() const { return bytes_.size() + begins_.size() * sizeof(std::size_t); }
  std::uint64_t rows() const { return begins_.size(); }

  /// The cells of a row, for the type's columns.
  std::vector<Cell> cells(std::uint64_t row, AvroType const& type, std::size_t columns) const {
    std::vector<Cell> cells(columns);
    AvroDecoder decoder(std::string_view(bytes_).substr(begins_[row]), where_);
    decoder.record(type, cells);
    return cells;
  }

 private:
  std::string bytes_;
  std::string where_;
  std::vector<std::size_t> begins_;
};

}  // namespace frugal::detail
