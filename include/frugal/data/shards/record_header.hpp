// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/base/json_fields.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/data/little_endian.hpp>
#include <frugal/data/shards/record_layout.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The header of a record file:
//
//   bytes  0 to  7   "FRGLREC" and a line feed
//   bytes  8 to 11   version of the format, 1
//   bytes 12 to 15   bytes of the JSON
//   bytes 16 to 23   XXH3 of the JSON
//   from byte 24     the JSON: block size and layout; then zeros up to a multiple of 64
//
// All numbers of a record file are little-endian.
namespace frugal::detail {

inline constexpr std::string_view record_magic = "FRGLREC\n";
inline constexpr std::uint32_t record_version = 1;
inline constexpr std::uint64_t record_prefix = 24;       ///< bytes before the JSON
inline constexpr std::uint64_t record_alignment = 64;    ///< of the data and of the index
inline constexpr std::uint32_t most_json = 1U << 20;     ///< bytes
inline constexpr std::uint64_t most_block = 1ULL << 30;  ///< bytes

constexpr std::uint64_t record_aligned(std::uint64_t at) {
  return (at + record_alignment - 1) / record_alignment * record_alignment;
}

[[noreturn]] FRUGAL_INLINE void record_fail(
    std::string const& file, std::uint64_t byte, std::string what, std::string why,
    std::string fix = "Fetch the file again, or write it again.") {
  throw DataError({.what = std::move(what),
                   .where = file + ", byte " + std::to_string(byte),
                   .why = std::move(why),
                   .fix = std::move(fix)});
}

/// The header of a record file.
struct RecordHeader {
  RecordLayout layout;
  std::uint64_t block_bytes = 1U << 16;  ///< bytes under one hash
  std::uint64_t data_at = 0;             ///< offset of the first record; bytes() sets it
  std::uint64_t hash = 0;                ///< of the JSON; bytes() sets it

  FRUGAL_INLINE std::string json() const {
    JsonWriter out;
    out.object().add("format", "frugal records").add("block_bytes", block_bytes);
    out.key("fields").array();
    for (RecordField const& field : layout.fields()) {
      out.object().add("name", field.name).add("dtype", dtype_name(field.dtype));
      out.key("shape").array();
      for (std::uint64_t const extent : field.shape) out.value(extent);
      out.end().end();
    }
    return out.str();
  }

  /// As a file begins with it.
  FRUGAL_INLINE std::vector<std::byte> bytes() {
    std::string const text = json();
    hash = Hash::of(std::as_bytes(std::span(text)));
    std::vector<std::byte> bytes;
    append_text(bytes, record_magic);
    append_le(bytes, record_version);
    append_le(bytes, static_cast<std::uint32_t>(text.size()));
    append_le(bytes, hash);
    append_text(bytes, text);
    data_at = record_aligned(bytes.size());
    bytes.resize(data_at);
    return bytes;
  }
};

/// Reads the header of a file that errors call `name`; DataError for every violation.
class RecordHeaderReader {
 public:
  RecordHeaderReader(std::span<std::byte const> file, std::string const& name)
      : file_(file), name_(name) {}

  FRUGAL_INLINE RecordHeader read() const {
    require_format();
    RecordHeader header;
    auto const size = load_le<std::uint32_t>(file_, 12);
    header.hash = load_le<std::uint64_t>(file_, 16);
    if (size > most_json) {
      fail(12, "the header is too large",
           "it has at most " + std::to_string(most_json) + " bytes, and claims " +
               std::to_string(size));
    }
    header.data_at = record_aligned(record_prefix + size);
    if (file_.size() < header.data_at) {
      fail(file_.size(), "the file is cut off",
           "its header ends at byte " + std::to_string(header.data_at));
    }
    auto const json = file_.subspan(record_prefix, size);
    if (std::uint64_t const found = Hash::of(json); found != header.hash) {
      fail(record_prefix, "the header is damaged",
           "its hash is " + hex_of(found) + ", and should be " + hex_of(header.hash));
    }
    read_json(std::string_view(reinterpret_cast<char const*>(json.data()), json.size()), header);
    return header;
  }

 private:
  FRUGAL_INLINE void require_format() const {
    std::string_view const begin(reinterpret_cast<char const*>(file_.data()),
                                 std::min(file_.size(), record_magic.size()));
    if (begin.empty()) fail(0, "the file is empty", "a record file begins with a header");
    if (begin != record_magic.substr(0, begin.size())) {
      record_fail(name_, 0, "this is no record file of frugal",
                  "it does not begin with \"FRGLREC\"",
                  "Give the path of a file that RecordWriter or ShardWriter wrote.");
    }
    if (file_.size() < record_prefix) {
      fail(file_.size(), "the file is cut off", "expected 24 bytes at least");
    }
    auto const written = load_le<std::uint32_t>(file_, 8);
    if (written > record_version) {
      record_fail(name_, 8, "a newer frugal wrote the file",
                  "its version is " + std::to_string(written) + ", and this frugal reads up to " +
                      std::to_string(record_version),
                  "Update frugal, or write the file with this one.");
    }
    if (written == 0) fail(8, "the header is damaged", "there was never a version 0");
  }

  FRUGAL_INLINE void read_json(std::string_view text, RecordHeader& header) const {
    JsonFields const fields({.what = "the header is damaged",
                             .where = name_ + ", header",
                             .why = "",
                             .fix = "Fetch the file again, or write it again."});
    try {
      Json const all = fields.parse(text, "frugal records");
      fields.only(all, {"format", "block_bytes", "fields"});
      header.block_bytes = fields.number(all, "block_bytes");
      if (header.block_bytes == 0 || header.block_bytes > most_block) {
        fields.fail(
            all, "a block has 1 to 2^30 bytes, and this one " + std::to_string(header.block_bytes));
      }
      std::vector<RecordField> list;
      for (Json const& item : fields.array(all, "fields")) list.push_back(field_of(fields, item));
      if (list.empty()) return;
      std::string why;
      auto layout = RecordLayout::of(std::move(list), why);
      if (!layout) fields.fail(why);
      header.layout = *std::move(layout);
    } catch (FormatError const& error) {
      throw DataError(error.fault());
    }
  }

  FRUGAL_INLINE static RecordField field_of(JsonFields const& fields, Json const& item) {
    fields.only(item, {"name", "dtype", "shape"});
    auto const dtype = dtype_of(fields.text(item, "dtype"));
    if (!dtype) fields.fail(item, "\"dtype\" is not known");
    RecordField field{.name = fields.text(item, "name"), .dtype = *dtype, .shape = {}};
    for (Json const& extent : fields.array(item, "shape")) {
      auto const value = extent.as_unsigned();
      if (!value) fields.fail(extent, "an extent is no number from 0 to 2^64 - 1");
      field.shape.push_back(*value);
    }
    return field;
  }

  [[noreturn]] void fail(std::uint64_t byte, std::string what, std::string why) const {
    record_fail(name_, byte, std::move(what), std::move(why));
  }

  std::span<std::byte const> file_;
  std::string const& name_;
};

}  // namespace frugal::detail
