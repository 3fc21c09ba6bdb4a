// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/error.hpp>

#include <avro.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
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
