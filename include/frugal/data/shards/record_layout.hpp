// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/utf8.hpp>
#include <frugal/checkpoint/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// A shard is a safetensors file with these tensors:
//
//   one per field         [records, ...]: row i is the field of record i
//   "bytes"               U8 [bytes]: records of any bytes, one after the other, instead of fields
//   "bytes.offsets"       I64 [records + 1]: record i is from offset i to offset i + 1
//   "frugal.block_hashes" U64 [blocks + 1]: XXH3-64 of every block_bytes bytes of each tensor above,
//                         in the order of "fields"; the last one is that of the file's header, its
//                         length included, and of the hashes before it
//
// and, if it has hashes, with metadata "frugal.records", in JSON:
// {"format":"frugal records","version":1,"block_bytes":65536,"fields":["data","target"]}
namespace frugal {

namespace detail {

inline constexpr std::string_view record_bytes_name = "bytes";
inline constexpr std::string_view record_offsets_name = "bytes.offsets";
inline constexpr std::string_view record_hashes_name = "frugal.block_hashes";
inline constexpr std::string_view record_metadata_key = "frugal.records";
inline constexpr std::uint64_t record_version = 1;
inline constexpr std::uint64_t most_block = 1ULL << 30;  ///< bytes
inline constexpr char const* shard_suffix = ".safetensors";

/// The last of the hashes of blocks; that place in them is not read.
std::uint64_t record_file_hash(std::span<std::byte const> header,
                               std::span<std::byte const> hashes);

}  // namespace detail

/// One tensor of every record.
struct RecordField {
  std::string name;
  Dtype dtype = Dtype::u8;
  std::vector<std::uint64_t> shape{};  ///< of one record; empty for a number
  std::uint64_t bytes = 0;             ///< of one record; RecordLayout sets it

  friend bool operator==(RecordField const&, RecordField const&) = default;
};

/// What a record is: either the same tensors in every record, or bytes of any number.
class RecordLayout {
 public:
  static constexpr std::size_t most_fields = 256;  ///< the writer has a file open for each

  /// Records of any bytes, each of its own length.
  RecordLayout() = default;

  /// Records of these tensors. Nothing if that is impossible; `why` then says what is wrong.
  static std::optional<RecordLayout> of(std::vector<RecordField> fields, std::string& why);

  /// Whether every record has the same tensors.
  bool fixed() const noexcept { return !fields_.empty(); }
  std::vector<RecordField> const& fields() const noexcept { return fields_; }

  /// "data U8 [28, 28], target I64 []", or "bytes".
  std::string text() const;

  friend bool operator==(RecordLayout const&, RecordLayout const&) = default;

 private:
  /// Sets the sizes; returns what is wrong.
  std::string measure();

  std::vector<RecordField> fields_;
};

/// The shards of a folder, in their order: its file shards.json, which ShardWriter writes last.
struct ShardList {
  static constexpr char const* file_name = "shards.json";
  static constexpr std::uint64_t newest_version = 1;

  struct Shard {
    std::string name;  ///< of the file in the folder
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;  ///< of the file
    std::uint64_t hash = 0;   ///< RecordFile::hash()

    friend bool operator==(Shard const&, Shard const&) = default;
  };

  std::vector<Shard> shards;

  /// "shard-000017.safetensors"
  static std::string shard_name(std::size_t number);

  std::string text() const;

  /// DataError that names file and byte, if the text is not what text() gives.
  static ShardList parse(std::string_view text, std::string const& file);

  /// The list of a folder. DataError if it has none: then writing it was not finished. IoError if
  /// it cannot be read now.
  static ShardList read(std::filesystem::path const& folder);

  /// Writes it to a folder that has none.
  void write(std::filesystem::path const& folder) const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/record_layout.ipp>
#endif
