// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/data/avro/codec.hpp>
#include <frugal/data/avro/schema.hpp>
#include <frugal/data/shards/open_files.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace frugal::detail {

/// Walks over the bytes of Avro values, and makes cells of those that are wanted. Every length is
/// compared with what is left before anything is done with it: libavro's own reader allocates what
/// a damaged length claims.
///
/// Source  Apache Avro 1.11.1 specification, "Binary encoding".
class AvroDecoder {
 public:
  /// `where` is what errors call the bytes.
  AvroDecoder(std::string_view bytes, std::string const& where) : bytes_(bytes), where_(where) {}

  std::size_t offset() const { return at_; }
  bool at_end() const { return at_ == bytes_.size(); }

  /// A record's cells to their columns.
  void record(AvroType const& type, std::vector<Cell>& cells) {
    for (AvroType const& field : type.parts) {
      if (field.column >= 0) {
        cells[static_cast<std::size_t>(field.column)] = value(field);
      } else if (field.kind == AvroType::Kind::record) {
        record(field, cells);
      } else {
        skip(field);
      }
    }
  }

  /// A value as one cell; maps and records have none.
  Cell value(AvroType const& type) {
    using Kind = AvroType::Kind;
    switch (type.kind) {
      case Kind::null:
        return {};
      case Kind::boolean:
        return boolean();
      case Kind::integer:
        return whole(type);
      case Kind::f32:
        return double{number<float>()};
      case Kind::f64:
        return number<double>();
      case Kind::bytes:
        return std::string(take(length()));
      case Kind::fixed:
        return std::string(take(type.size));
      case Kind::symbol:
        return type.symbols[choice(type.symbols.size())];
      case Kind::list:
        return list(type.parts[0]);
      case Kind::either:
        return value(type.parts[choice(type.parts.size())]);
      case Kind::map:
      case Kind::record:
        break;
    }
    fail("a value has no cell", "");
  }

  void skip(AvroType const& type) {
    using Kind = AvroType::Kind;
    switch (type.kind) {
      case Kind::null:
        return;
      case Kind::boolean:
        static_cast<void>(boolean());
        return;
      case Kind::integer:
        static_cast<void>(integer());
        return;
      case Kind::f32:
        static_cast<void>(take(4));
        return;
      case Kind::f64:
        static_cast<void>(take(8));
        return;
      case Kind::bytes:
        static_cast<void>(take(length()));
        return;
      case Kind::fixed:
        static_cast<void>(take(type.size));
        return;
      case Kind::symbol:
        static_cast<void>(choice(type.symbols.size()));
        return;
      case Kind::list:
        items(type.parts[0].empty(), [&] { skip(type.parts[0]); });
        return;
      case Kind::map:
        items(false, [&] {
          static_cast<void>(take(length()));
          skip(type.parts[0]);
        });
        return;
      case Kind::record:
        for (AvroType const& field : type.parts) skip(field);
        return;
      case Kind::either:
        skip(type.parts[choice(type.parts.size())]);
        return;
    }
  }

  /// A variable-length integer in zigzag code.
  std::int64_t integer() {
    std::uint64_t bits = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (at_ == bytes_.size()) cut_off("an integer", 1);
      auto const byte = static_cast<unsigned char>(bytes_[at_++]);
      if (shift == 63 && byte > 1) fail("an integer has more than 64 bits", "");
      bits |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) break;
    }
    return static_cast<std::int64_t>(bits >> 1 ^ (~(bits & 1) + 1));
  }

  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) cut_off("a value", size);
    std::string_view const taken = bytes_.substr(at_, static_cast<std::size_t>(size));
    at_ += taken.size();
    return taken;
  }

  std::uint64_t length() {
    std::int64_t const length = integer();
    if (length < 0) fail("a length is negative", "it is " + std::to_string(length));
    return static_cast<std::uint64_t>(length);
  }

  [[noreturn]] void fail(std::string what, std::string why) const {
    throw DataError({.what = std::move(what),
                     .where = where_ + ", byte " + std::to_string(at_),
                     .why = std::move(why),
                     .fix = "Fetch or write the file again."});
  }

  /// Calls `each()` for every item of an array or a map, which comes in blocks.
  template <class Each>
  void items(bool empty, Each&& each) {
    while (true) {
      std::int64_t count = integer();
      if (count == 0) return;
      if (count < 0) {
        static_cast<void>(integer());  // the bytes of the block
        if (count == INT64_MIN) fail("a list has too many items", "");
        count = -count;
      }
      if (empty) continue;
      // Every item takes a byte at least.
      if (static_cast<std::uint64_t>(count) > bytes_.size() - at_) {
        cut_off(std::to_string(count) + " items", static_cast<std::uint64_t>(count));
      }
      for (; count > 0; --count) each();
    }
  }

 private:
  bool boolean() {
    char const byte = take(1)[0];
    if (byte != 0 && byte != 1) fail("a boolean is neither 0 nor 1", "");
    return byte == 1;
  }

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  /// An int or a long; an int is written in as many bytes as it takes, which may be too many.
  std::int64_t whole(AvroType const& type) {
    std::int64_t const value = integer();
    if (type.narrow && value != static_cast<std::int32_t>(value)) {
      fail("an int has more than 32 bits", "it is " + std::to_string(value));
    }
    return value;
  }

  std::size_t choice(std::size_t size) {
    std::int64_t const index = integer();
    if (index < 0 || static_cast<std::uint64_t>(index) >= size) {
      fail("a union's branch or an enum's symbol does not exist",
           "it is number " + std::to_string(index) + " of " + std::to_string(size));
    }
    return static_cast<std::size_t>(index);
  }

  Cell list(AvroType const& of) {
    using Kind = AvroType::Kind;
    if (of.kind == Kind::bytes || of.kind == Kind::symbol || of.kind == Kind::fixed) {
      std::vector<std::string> texts;
      items(of.empty(), [&] { texts.push_back(std::get<std::string>(value(of))); });
      return texts;
    }
    Numbers out;
    auto const add = [&]<class T>(Dtype dtype, T const&) {
      out.dtype = dtype;
      items(false, [&] {
        T item{};
        if constexpr (std::is_same_v<T, bool>) {
          item = boolean();
        } else if constexpr (std::is_integral_v<T>) {
          item = static_cast<T>(whole(of));
        } else {
          item = number<T>();
        }
        out.bytes.append(reinterpret_cast<char const*>(&item), sizeof(T));
      });
    };
    switch (of.kind) {
      case Kind::boolean:
        add(Dtype::boolean, bool{});
        break;
      case Kind::integer:
        of.narrow ? add(Dtype::i32, std::int32_t{}) : add(Dtype::i64, std::int64_t{});
        break;
      case Kind::f32:
        add(Dtype::f32, float{});
        break;
      default:
        add(Dtype::f64, double{});
        break;
    }
    return out;
  }

  std::string_view bytes_;
  std::string const& where_;
  std::size_t at_ = 0;

  [[noreturn]] void cut_off(std::string const& what, std::uint64_t wanted) const {
    fail(what + " is cut off", "it takes " + std::to_string(wanted) + " bytes, and " +
                                   std::to_string(bytes_.size() - at_) + " are left");
  }
};

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
