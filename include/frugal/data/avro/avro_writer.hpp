// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/data/avro/codec.hpp>
#include <frugal/data/avro/schema.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/data/tables/files.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <sys/random.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace frugal::detail {

/// Writes cells as Avro values.
///
/// Source  Apache Avro 1.11.1 specification, "Binary encoding".
class AvroEncoder {
 public:
  std::string const& text() const { return out_; }
  void cut(std::size_t size) { out_.resize(size); }

  void raw(std::string_view bytes) { out_ += bytes; }

  void integer(std::int64_t value) {
    std::uint64_t bits = static_cast<std::uint64_t>(value) << 1;
    if (value < 0) bits = ~bits;
    for (; bits >= 0x80; bits >>= 7) out_ += static_cast<char>(bits | 0x80);
    out_ += static_cast<char>(bits);
  }

  void bytes(std::string_view value) {
    integer(static_cast<std::int64_t>(value.size()));
    raw(value);
  }

  /// A record's fields from the row's columns of the same name.
  void record(AvroType const& type, Row const& row, std::string const& prefix,
              std::string const& where) {
    for (AvroType const& field : type.parts) {
      std::string const name = prefix + field.name;
      if (field.kind == AvroType::Kind::record) {
        record(field, row, name + '.', where);
        continue;
      }
      Cell const& cell = row.cell(name);
      if (put(field, cell)) continue;
      throw DataError({.what = "a cell does not fit its column",
                       .where = where + ", column " + name,
                       .why = std::string("it is ") + cell_kind(cell) +
                              ", and the schema has another type, range, symbol or size",
                       .fix = "Write what the schema says, or change the schema."});
    }
  }

 private:
  template <class T>
  void number(T value) {
    out_.append(reinterpret_cast<char const*>(&value), sizeof(T));
  }

  /// False, with nothing written, for a cell that the type cannot hold.
  bool put(AvroType const& type, Cell const& cell) {
    using Kind = AvroType::Kind;
    auto const* const whole = std::get_if<std::int64_t>(&cell);
    auto const* const text = std::get_if<std::string>(&cell);
    switch (type.kind) {
      case Kind::null:
        return std::holds_alternative<std::monostate>(cell);
      case Kind::boolean:
        if (!std::holds_alternative<bool>(cell)) return false;
        out_ += std::get<bool>(cell) ? '\1' : '\0';
        return true;
      case Kind::integer:
        if (!whole || (type.narrow && *whole != static_cast<std::int32_t>(*whole))) return false;
        integer(*whole);
        return true;
      case Kind::f32:
      case Kind::f64: {
        if (!whole && !std::holds_alternative<double>(cell)) return false;
        // An integer is written as a float only if it is one; a double is rounded to float, as the
        // schema says, but not to infinity.
        if (whole && !fits_double(*whole, type.kind == Kind::f32 ? 24 : 53)) return false;
        double const value = whole ? static_cast<double>(*whole) : std::get<double>(cell);
        auto const narrow = static_cast<float>(value);
        if (type.kind == Kind::f32 && std::isfinite(value) && !std::isfinite(narrow)) return false;
        type.kind == Kind::f32 ? number(narrow) : number(value);
        return true;
      }
      case Kind::bytes:
        if (text) bytes(*text);
        return text != nullptr;
      case Kind::fixed:
        if (!text || text->size() != type.size) return false;
        raw(*text);
        return true;
      case Kind::symbol:
        for (std::size_t i = 0; text && i < type.symbols.size(); ++i) {
          if (type.symbols[i] != *text) continue;
          integer(static_cast<std::int64_t>(i));
          return true;
        }
        return false;
      case Kind::list:
        return list(type.parts[0], cell);
      case Kind::either:
        return branch(type, cell);
      case Kind::map:
      case Kind::record:
        break;
    }
    return false;
  }

  /// The first branch that holds the cell as it is, or else as a float, rounded.
  bool branch(AvroType const& type, Cell const& cell) {
    std::size_t const before = out_.size();
    auto const* const real = std::get_if<double>(&cell);
    bool const narrow =
        !real || std::isnan(*real) || static_cast<double>(static_cast<float>(*real)) == *real;
    for (bool const as_float : {false, true}) {
      for (std::size_t i = 0; i < type.parts.size(); ++i) {
        auto const kind = type.parts[i].kind;
        bool const floats = kind == AvroType::Kind::f32 || kind == AvroType::Kind::f64;
        if (floats && !as_float && std::holds_alternative<std::int64_t>(cell)) continue;
        if (kind == AvroType::Kind::f32 && !as_float && !narrow) continue;
        integer(static_cast<std::int64_t>(i));
        if (put(type.parts[i], cell)) return true;
        out_.resize(before);
      }
    }
    return false;
  }

  bool list(AvroType const& of, Cell const& cell) {
    std::size_t const before = out_.size();
    auto const all = [&](std::size_t count, auto const& item) {
      if (count > 0) integer(static_cast<std::int64_t>(count));
      for (std::size_t i = 0; i < count; ++i) {
        if (put(of, item(i))) continue;
        out_.resize(before);
        return false;
      }
      integer(0);
      return true;
    };
    if (auto const* const texts = std::get_if<std::vector<std::string>>(&cell)) {
      return all(texts->size(), [&](std::size_t i) { return Cell((*texts)[i]); });
    }
    auto const* const list = std::get_if<Numbers>(&cell);
    if (!list) return false;
    return all(static_cast<std::size_t>(list->count()), [&](std::size_t i) {
      return item_of(list->dtype, list->bytes.data() + i * (dtype_bits(list->dtype) / 8));
    });
  }

  /// One of packed numbers; null for a type that Avro lacks.
  static Cell item_of(Dtype dtype, char const* bytes) {
    if (dtype == Dtype::boolean) return *bytes != 0;
    return packed_cell(dtype, bytes);
  }

  std::string out_;
};

}  // namespace frugal::detail

namespace frugal {

/// How an Avro file is written.
struct AvroWriterSettings {
  AvroCodec codec = AvroCodec::deflate;
  std::uint64_t block_bytes = 64U << 10;  ///< of rows before compression; a block ends with its row
};

/// Writes rows as an Avro container file of a schema in JSON. A row has the leaves of the schema as
/// its columns, by name: "box.width" for a field of a record within the record. The file has its
/// name once close() has returned; without close() nothing is left of it.
///
/// Errors  DataError for an invalid schema, and for a cell that its column cannot hold;
///         SettingsError for a row that lacks a column, and for a column of decimals; StoreError if `path` exists, or the disk
///         does not take the file.
class AvroWriter {
 public:
  AvroWriter(std::filesystem::path const& path, std::string const& schema,
             AvroWriterSettings settings = {})
      : settings_(settings), where_(free(path)), type_(checked(schema, where_)), file_(path) {
    sync_.resize(16);
    // Random, so that no file's rows hold another's marker.
    if (::getrandom(sync_.data(), sync_.size(), 0) != static_cast<ssize_t>(sync_.size())) {
      throw StoreError({.what = "no random bytes for the sync marker",
                        .where = where_,
                        .why = "getrandom failed",
                        .fix = "Try again."});
    }
    detail::AvroEncoder header;
    header.raw("Obj\1");
    header.integer(2);
    header.bytes("avro.schema");
    header.bytes(schema);
    header.bytes("avro.codec");
    header.bytes(detail::codec_name(settings_.codec));
    header.integer(0);
    header.raw(sync_);
    put(header.text());
  }

  void add(Row const& row) {
    std::size_t const before = block_.text().size();
    try {
      block_.record(type_, row, "", where_ + ", row " + std::to_string(written_ + rows_));
    } catch (...) {
      block_.cut(before);  // the row is not in the file
      throw;
    }
    ++rows_;
    if (block_.text().size() >= settings_.block_bytes) flush();
  }

  /// Writes what is left, and makes the file durable under its name.
  void close() {
    if (rows_ > 0) flush();
    file_.publish();
  }

 private:
  static std::string free(std::filesystem::path const& path) {
    detail::require_free(path);
    return path.string();
  }

  static AvroType checked(std::string const& schema, std::string const& where) {
    AvroType type = avro_schema(schema, where);
    detail::AvroUnits const units(schema);
    for (std::string const& column : units.decimals()) units.require_no_decimal(column, where);
    return type;
  }

  void flush() {
    std::string const packed = detail::compressed(settings_.codec, block_.text(), where_);
    detail::AvroEncoder head;
    head.integer(static_cast<std::int64_t>(rows_));
    head.integer(static_cast<std::int64_t>(packed.size()));
    put(head.text());
    put(packed);
    put(sync_);
    written_ += rows_;
    rows_ = 0;
    block_.cut(0);
  }

  void put(std::string const& bytes) { file_.write(std::as_bytes(std::span(bytes))); }

  AvroWriterSettings settings_;
  std::string where_;
  AvroType type_;
  detail::NewFile file_;
  std::string sync_;
  detail::AvroEncoder block_;
  std::uint64_t rows_ = 0;     ///< in the block
  std::uint64_t written_ = 0;  ///< in blocks before it
};

}  // namespace frugal
