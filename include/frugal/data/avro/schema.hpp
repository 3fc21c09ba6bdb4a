// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <avro.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal {

/// A type of an Avro schema, with its parts.
struct AvroType {
  enum class Kind {
    null,
    boolean,
    integer,  ///< int and long
    f32,
    f64,
    bytes,  ///< bytes and string
    fixed,
    symbol,  ///< enum
    list,    ///< array
    map,
    record,
    either,  ///< union
  };

  Kind kind = Kind::null;
  std::string name = {};                  ///< of the field that has it
  bool narrow = false;                    ///< int, whose range is that of 32 bits
  std::uint64_t size = 0;                 ///< bytes of a fixed
  std::vector<std::string> symbols = {};  ///< of an enum
  std::vector<AvroType> parts = {};       ///< items, values, fields or branches
  std::ptrdiff_t column = -1;             ///< where its cell goes; below 0: it is skipped

  /// Whether a value takes no bytes at all.
  bool empty() const {
    return kind == Kind::null || (kind == Kind::fixed && size == 0) ||
           (kind == Kind::record &&
            std::all_of(parts.begin(), parts.end(), [](AvroType const& t) { return t.empty(); }));
  }
};

namespace detail {

/// Reads a schema with libavro, and follows its names.
class AvroSchemaReader {
 public:
  explicit AvroSchemaReader(std::string where) : where_(std::move(where)) {}

  AvroType read(std::string const& json) {
    avro_schema_t schema = nullptr;
    if (avro_schema_from_json_length(json.data(), json.size(), &schema) != 0) {
      fail("the schema is invalid", std::string("libavro says: ") + avro_strerror());
    }
    std::unique_ptr<std::remove_pointer_t<avro_schema_t>, int (*)(avro_schema_t)> const owner(
        schema, avro_schema_decref);
    AvroType type = convert(schema, 0);
    if (type.kind != AvroType::Kind::record) {
      type.name = "value";
      AvroType record{.kind = AvroType::Kind::record};
      record.parts.push_back(std::move(type));
      return record;
    }
    return type;
  }

 private:
  // A schema that names itself, or doubles with every level, would never end.
  static constexpr int deepest = 32;
  static constexpr std::size_t most_types = 10000;

  AvroType convert(avro_schema_t schema, int depth) {
    using Kind = AvroType::Kind;
    if (depth > deepest || ++types_ > most_types) {
      fail("the schema is too deep or too large",
           "frugal reads " + std::to_string(deepest) + " levels and " + std::to_string(most_types) +
               " types; a type that has itself as a part has no end");
    }
    AvroType type;
    auto const part = [&](avro_schema_t each) -> AvroType& {
      type.parts.push_back(convert(each, depth + 1));
      return type.parts.back();
    };
    switch (avro_typeof(schema)) {
      case AVRO_NULL:
        break;
      case AVRO_BOOLEAN:
        type.kind = Kind::boolean;
        break;
      case AVRO_INT32:
        type.narrow = true;
        [[fallthrough]];
      case AVRO_INT64:
        type.kind = Kind::integer;
        break;
      case AVRO_FLOAT:
        type.kind = Kind::f32;
        break;
      case AVRO_DOUBLE:
        type.kind = Kind::f64;
        break;
      case AVRO_STRING:
      case AVRO_BYTES:
        type.kind = Kind::bytes;
        break;
      case AVRO_FIXED:
        type.kind = Kind::fixed;
        if (avro_schema_fixed_size(schema) < 0) fail("the schema is invalid", "a negative size");
        type.size = static_cast<std::uint64_t>(avro_schema_fixed_size(schema));
        break;
      case AVRO_ENUM:
        type.kind = Kind::symbol;
        for (int i = 0; i < avro_schema_enum_number_of_symbols(schema); ++i) {
          type.symbols.emplace_back(avro_schema_enum_get(schema, i));
        }
        break;
      case AVRO_ARRAY:
        type.kind = Kind::list;
        part(avro_schema_array_items(schema));
        break;
      case AVRO_MAP:
        type.kind = Kind::map;
        part(avro_schema_map_values(schema));
        break;
      case AVRO_RECORD:
        type.kind = Kind::record;
        for (std::size_t i = 0; i < avro_schema_record_size(schema); ++i) {
          auto const index = static_cast<int>(i);
          part(avro_schema_record_field_get_by_index(schema, index)).name =
              avro_schema_record_field_name(schema, index);
        }
        break;
      case AVRO_UNION:
        type.kind = Kind::either;
        for (std::size_t i = 0; i < avro_schema_union_size(schema); ++i) {
          part(avro_schema_union_branch(schema, static_cast<int>(i)));
        }
        break;
      case AVRO_LINK:
        return convert(avro_schema_link_target(schema), depth + 1);
      default:
        fail("the schema has an unknown type", "");
    }
    return type;
  }

  [[noreturn]] void fail(std::string what, std::string why) const {
    throw DataError({.what = std::move(what),
                     .where = where_,
                     .why = std::move(why),
                     .fix = "Write the file with a schema of the Avro specification 1.11."});
  }

  std::string where_;
  std::size_t types_ = 0;
};

}  // namespace detail

/// The types of a schema in JSON, read by libavro; a schema that is no record becomes the column
/// "value". `where` is what errors call it.
///
/// Errors  DataError for an invalid schema, and one without end.
inline AvroType avro_schema(std::string const& json, std::string const& where) {
  return detail::AvroSchemaReader(where).read(json);
}

}  // namespace frugal

namespace frugal::detail {

/// The units of the times of a schema, and its decimals, by the names of its columns. libavro drops logical
/// types, so the schema's JSON is read once more.
///
/// Source  Apache Avro 1.11.1 specification, "Logical Types".
class AvroUnits {
 public:
  explicit AvroUnits(std::string const& schema) {
    if (auto const json = Json::parse(schema)) read(*json, "value", 0);
    named_.clear();  // they are in the JSON
  }

  TimeUnit of(std::string const& column) const {
    auto const found = units_.find(column);
    return found == units_.end() ? TimeUnit::none : found->second;
  }

  /// SettingsError for a column of decimals: their bytes are a number of two's complement without its scale.
  void require_no_decimal(std::string const& column, std::string const& where) const {
    if (!decimals_.contains(column)) return;
    throw SettingsError({.what = "a column's type is not read",
                         .where = where + ", column " + column,
                         .why = "it is a decimal, whose bytes are no number without its scale",
                         .fix =
                             "Leave the column out by naming the others in `columns`, or write it "
                             "as a double, or as a long of its smallest unit."});
  }
  std::set<std::string, std::less<>> const& decimals() const { return decimals_; }

 private:
  static constexpr int deepest = 32;  // as AvroSchemaReader's

  static TimeUnit unit_of(std::string_view logical) {
    if (logical == "date") return TimeUnit::day;
    if (logical.ends_with("-millis")) return TimeUnit::millisecond;
    if (logical.ends_with("-micros")) return TimeUnit::microsecond;
    if (logical.ends_with("-nanos")) return TimeUnit::nanosecond;
    return TimeUnit::none;
  }

  static std::string_view text_of(Json const& type, std::string_view member) {
    Json const* const found = type.find(member);
    return found && found->is(Json::Kind::text) ? std::string_view(found->text())
                                                : std::string_view();
  }

  /// A type whose cell is in `column`, or whose fields are below it.
  void read(Json const& type, std::string const& column, int depth) {
    if (depth > deepest) return;
    if (type.is(Json::Kind::array)) {  // a union
      for (Json const& branch : type.items()) read(branch, column, depth + 1);
      return;
    }
    if (type.is(Json::Kind::text)) {
      Json const* const named = of_name(type.text());
      if (named == nullptr) return;
      if (is_decimal(*named)) decimals_.insert(column);
      fields(*named, column + '.', depth + 1);
      return;
    }
    if (!type.is(Json::Kind::object)) return;
    std::string_view const kind = text_of(type, "type");
    if (std::string_view const name = text_of(type, "name"); !name.empty()) {
      named_.emplace(name, &type);
      if (std::string_view const space = text_of(type, "namespace"); !space.empty()) {
        named_.emplace(std::string(space) + '.' + std::string(name), &type);
      }
    }
    if (kind == "record" || kind == "error") {
      fields(type, depth == 0 ? "" : column + '.', depth + 1);
    } else if (kind == "array") {
      if (Json const* const items = type.find("items")) read(*items, column, depth + 1);
    } else if (is_decimal(type)) {
      decimals_.insert(column);
    } else if (TimeUnit const unit = unit_of(text_of(type, "logicalType"));
               unit != TimeUnit::none) {
      if (kind == "int" || kind == "long") units_.emplace(column, unit);
    } else if (Json const* const inner = type.find("type"); inner && kind.empty()) {
      read(*inner, column, depth + 1);
    }
  }

  static bool is_decimal(Json const& type) {
    std::string_view const kind = text_of(type, "type");
    return (kind == "bytes" || kind == "fixed") && text_of(type, "logicalType") == "decimal";
  }

  /// Of a full name, or of a name in the namespace around it.
  Json const* of_name(std::string_view name) const {
    auto found = named_.find(name);
    if (found == named_.end()) found = named_.find(name.substr(name.rfind('.') + 1));
    return found == named_.end() ? nullptr : found->second;
  }

  void fields(Json const& record, std::string const& prefix, int depth) {
    Json const* const all = record.find("fields");
    if (!all || depth > deepest) return;
    for (Json const& field : all->items()) {
      Json const* const type = field.find("type");
      if (type) read(*type, prefix + std::string(text_of(field, "name")), depth);
    }
  }

  std::map<std::string, Json const*, std::less<>> named_;
  std::set<std::string, std::less<>> decimals_;
  std::map<std::string, TimeUnit> units_;
};

/// What an Avro type has: its numbers, where every branch has the same.
inline std::optional<Dtype> avro_dtype(AvroType const& type) {
  using Kind = AvroType::Kind;
  switch (type.kind) {
    case Kind::boolean:
      return Dtype::boolean;
    case Kind::integer:
      return type.narrow ? Dtype::i32 : Dtype::i64;
    case Kind::f32:
      return Dtype::f32;
    case Kind::f64:
      return Dtype::f64;
    case Kind::either: {
      std::optional<Dtype> one;
      for (AvroType const& branch : type.parts) {
        if (branch.kind == Kind::null) continue;
        auto const each = avro_dtype(branch);
        if (!each || (one && *one != *each)) return std::nullopt;
        one = each;
      }
      return one;
    }
    default:
      return std::nullopt;
  }
}

/// Puts what is known of the columns of a record, which have their places, into `formats`.
inline void avro_formats(AvroType const& record, AvroUnits const& units,
                         std::vector<std::string> const& columns,
                         std::vector<ColumnFormat>& formats) {
  for (AvroType const& field : record.parts) {
    if (field.column >= 0) {
      auto const at = static_cast<std::size_t>(field.column);
      formats[at] = {.dtype = avro_dtype(field), .unit = units.of(columns[at])};
    } else if (field.kind == AvroType::Kind::record) {
      avro_formats(field, units, columns, formats);
    }
  }
}

}  // namespace frugal::detail
