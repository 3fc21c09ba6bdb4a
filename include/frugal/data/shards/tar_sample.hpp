// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/field_text.hpp>
#include <frugal/data/shards/npy.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// One sample of a tar shard: its fields by extension, "jpg" or "cls" or "seg.png", as bytes.
/// Copies share the bytes, and keep them for as long as one of them lives.
///
/// Errors  DataError that names shard, sample and field: a field that is not there, or is not what
///         it is read as.
class TarSample {
 public:
  struct Field {
    std::string extension;
    std::size_t begin = 0;  ///< in the sample's bytes
    std::size_t size = 0;
  };

  TarSample() = default;
  /// `shard` is what errors call the file.
  TarSample(std::string key_, std::shared_ptr<std::string const> shard,
            std::shared_ptr<char const[]> bytes, std::vector<Field> fields)
      : key(std::move(key_)),
        shard_(std::move(shard)),
        bytes_(std::move(bytes)),
        fields_(std::move(fields)) {}

  std::string key;  ///< the name of its members without their extensions

  /// A field's bytes.
  std::string_view operator[](std::string_view extension) const {
    if (auto const bytes = find(extension)) return *bytes;
    std::string all;
    for (Field const& field : fields_) all += (all.empty() ? "" : ", ") + field.extension;
    throw DataError({.what = "a sample has no field \"" + std::string(extension) + "\"",
                     .where = name(),
                     .why = all.empty() ? "it has none" : "its fields are: " + all,
                     .fix = "Name one of them, or leave the sample out."});
  }
  std::optional<std::string_view> find(std::string_view extension) const {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].extension == extension) return bytes(i);
    }
    return std::nullopt;
  }
  bool has(std::string_view extension) const { return find(extension).has_value(); }

  /// The number of fields, and each of them; they come in the order of the file.
  std::size_t size() const { return fields_.size(); }
  std::string_view extension(std::size_t i) const { return fields_[i].extension; }
  std::string_view bytes(std::size_t i) const {
    return {bytes_.get() + fields_[i].begin, fields_[i].size};
  }

  /// A field as a whole number (.cls, .id, .index).
  std::int64_t integer(std::string_view extension) const {
    return detail::integer_of((*this)[extension], where(extension));
  }
  /// A field as text in UTF-8 (.txt).
  std::string_view text(std::string_view extension) const {
    return detail::text_of((*this)[extension], where(extension));
  }
  /// A field as JSON: json("json").find("label").
  detail::Json json(std::string_view extension) const {
    return detail::json_of((*this)[extension], where(extension));
  }
  /// A field as an array of NumPy (.npy); a view of the sample's bytes.
  NpyArray npy(std::string_view extension) const {
    return read_npy(std::as_bytes(std::span((*this)[extension])), where(extension));
  }

  /// What errors call the sample.
  std::string name() const { return (shard_ ? *shard_ + ", " : "") + "sample " + key; }

 private:
  std::string where(std::string_view extension) const {
    return name() + ", field " + std::string(extension);
  }

  std::shared_ptr<std::string const> shard_;
  std::shared_ptr<char const[]> bytes_;
  std::vector<Field> fields_;
};

}  // namespace frugal
