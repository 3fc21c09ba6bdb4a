// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
FRUGAL_INLINE std::uint64_t record_file_hash(std::span<std::byte const> header,
                                             std::span<std::byte const> hashes) {
  Hash all;
  all.update(header);
  all.update(hashes.first(hashes.size() - sizeof(std::uint64_t)));
  return all.digest();
}

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
  FRUGAL_INLINE static std::optional<RecordLayout> of(std::vector<RecordField> fields,
                                                      std::string& why) {
    RecordLayout layout;
    layout.fields_ = std::move(fields);
    why = layout.measure();
    if (!why.empty()) return std::nullopt;
    return layout;
  }

  /// Whether every record has the same tensors.
  bool fixed() const noexcept { return !fields_.empty(); }
  std::vector<RecordField> const& fields() const noexcept { return fields_; }

  /// "data U8 [28, 28], target I64 []", or "bytes".
  FRUGAL_INLINE std::string text() const {
    std::string text;
    for (RecordField const& field : fields_) {
      text += (text.empty() ? "" : ", ") + field.name + " " + std::string(dtype_name(field.dtype)) +
              " [";
      for (std::size_t i = 0; i < field.shape.size(); ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(field.shape[i]);
      }
      text += "]";
    }
    return text.empty() ? "bytes" : text;
  }

  friend bool operator==(RecordLayout const&, RecordLayout const&) = default;

 private:
  /// Sets the sizes; returns what is wrong.
  FRUGAL_INLINE std::string measure() {
    if (fields_.empty() || fields_.size() > most_fields) {
      return "a record has 1 to " + std::to_string(most_fields) + " fields, and this one " +
             std::to_string(fields_.size());
    }
    bool empty = true;
    for (auto field = fields_.begin(); field != fields_.end(); ++field) {
      auto const same = [&](RecordField const& other) { return other.name == field->name; };
      if (std::any_of(fields_.begin(), field, same)) {
        return "two fields have the name \"" + field->name + "\"";
      }
      if (field->name == detail::record_offsets_name || field->name == detail::record_hashes_name ||
          field->name == "__metadata__") {
        return "a shard has a tensor or metadata named \"" + field->name + "\" itself";
      }
      // The header is JSON: a file with such a name could not be read back.
      if (!detail::is_utf8(field->name)) return "the name of a field is not UTF-8";
      auto const bits = tensor_bits(field->dtype, field->shape);
      if (!bits) return "the field \"" + field->name + "\" is larger than 64 bits can say";
      if (*bits % 8 != 0) return "the field \"" + field->name + "\" ends within a byte";
      field->bytes = *bits / 8;
      empty = empty && field->bytes == 0;
    }
    return empty ? "a record has no bytes" : "";
  }

  std::vector<RecordField> fields_;
};

}  // namespace frugal
