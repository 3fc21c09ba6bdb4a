// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/record_layout.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::uint64_t record_file_hash(std::span<std::byte const> header,
                                             std::span<std::byte const> hashes) {
  Hash all;
  all.update(header);
  all.update(hashes.first(hashes.size() - sizeof(std::uint64_t)));
  return all.digest();
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::optional<RecordLayout> RecordLayout::of(std::vector<RecordField> fields,
                                                           std::string& why) {
  RecordLayout layout;
  layout.fields_ = std::move(fields);
  why = layout.measure();
  if (!why.empty()) return std::nullopt;
  return layout;
}

FRUGAL_INLINE std::string RecordLayout::text() const {
  std::string text;
  for (RecordField const& field : fields_) {
    text +=
        (text.empty() ? "" : ", ") + field.name + " " + std::string(dtype_name(field.dtype)) + " [";
    for (std::size_t i = 0; i < field.shape.size(); ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(field.shape[i]);
    }
    text += "]";
  }
  return text.empty() ? "bytes" : text;
}

FRUGAL_INLINE std::string RecordLayout::measure() {
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

}  // namespace frugal
