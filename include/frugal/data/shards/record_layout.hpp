// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/utf8.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// One tensor of every record.
struct RecordField {
  std::string name;
  Dtype dtype = Dtype::u8;
  std::vector<std::uint64_t> shape{};  ///< empty for a number
  std::uint64_t offset = 0;            ///< bytes from the record's start; RecordLayout sets it
  std::uint64_t bytes = 0;             ///< RecordLayout sets it

  friend bool operator==(RecordField const&, RecordField const&) = default;
};

/// What a record is: either the same tensors in every record, at fixed offsets, or bytes of any
/// number. Fields stand in their order, each aligned for its dtype; so are the records.
class RecordLayout {
 public:
  /// Larger records are refused: a header of a few bytes must not claim the address space.
  static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;
  static constexpr std::size_t most_fields = 4096;

  /// Records of any bytes, each of its own length.
  RecordLayout() = default;

  /// Records of these tensors. Nothing if that is impossible; `why` then says what is wrong.
  FRUGAL_INLINE static std::optional<RecordLayout> of(std::vector<RecordField> fields,
                                                      std::string& why) {
    RecordLayout layout;
    layout.fields_ = std::move(fields);
    why = layout.place();
    if (!why.empty()) return std::nullopt;
    return layout;
  }

  /// Whether every record has the same tensors.
  bool fixed() const noexcept { return !fields_.empty(); }
  std::vector<RecordField> const& fields() const noexcept { return fields_; }
  /// Bytes from one record to the next; 0 for records of any bytes.
  std::uint64_t record_bytes() const noexcept { return record_bytes_; }

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
  /// Sets offsets and sizes; returns what is wrong.
  FRUGAL_INLINE std::string place() {
    if (fields_.empty() || fields_.size() > most_fields) {
      return "a record has 1 to " + std::to_string(most_fields) + " fields, and this one " +
             std::to_string(fields_.size());
    }
    std::uint64_t at = 0;
    std::uint64_t alignment = 1;
    for (auto field = fields_.begin(); field != fields_.end(); ++field) {
      auto const same = [&](RecordField const& other) { return other.name == field->name; };
      if (std::any_of(fields_.begin(), field, same)) {
        return "two fields have the name \"" + field->name + "\"";
      }
      // The header is JSON: a file with such a name could not be read back.
      if (!detail::is_utf8(field->name)) return "the name of a field is not UTF-8";
      auto const bits = tensor_bits(field->dtype, field->shape);
      if (!bits || *bits / 8 > most_bytes) {
        return "the field \"" + field->name + "\" is larger than 2^40 bytes";
      }
      if (*bits % 8 != 0) return "the field \"" + field->name + "\" ends within a byte";
      std::uint64_t const step = dtype_alignment(field->dtype);
      alignment = std::max(alignment, step);
      at = (at + step - 1) / step * step;
      field->offset = at;
      field->bytes = *bits / 8;
      at += field->bytes;  // at most 4096 times 2^40
    }
    record_bytes_ = (at + alignment - 1) / alignment * alignment;
    if (record_bytes_ > most_bytes) return "a record is larger than 2^40 bytes";
    if (record_bytes_ == 0) return "a record has no bytes";
    return {};
  }

  std::vector<RecordField> fields_;
  std::uint64_t record_bytes_ = 0;
};

}  // namespace frugal
