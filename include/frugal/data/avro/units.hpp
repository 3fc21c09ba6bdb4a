// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/data/avro/schema.hpp>
#include <frugal/data/tables/cell.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frugal::detail {

/// The units of the times of a schema, by the names of its columns. libavro drops logical types, so
/// the schema's JSON is read once more.
///
/// Source  Apache Avro 1.11.1 specification, "Logical Types".
class AvroUnits {
 public:
  explicit AvroUnits(std::string const& schema) {
    if (auto const json = Json::parse(schema)) read(*json, "value", 0);
    records_.clear();  // they are in the JSON
  }

  TimeUnit of(std::string const& column) const {
    auto const found = units_.find(column);
    return found == units_.end() ? TimeUnit::none : found->second;
  }

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
      auto const named = records_.find(type.text());
      if (named != records_.end()) fields(*named->second, column + '.', depth + 1);
      return;
    }
    if (!type.is(Json::Kind::object)) return;
    std::string_view const kind = text_of(type, "type");
    if (kind == "record" || kind == "error") {
      records_.emplace(text_of(type, "name"), &type);
      fields(type, depth == 0 ? "" : column + '.', depth + 1);
    } else if (kind == "array") {
      if (Json const* const items = type.find("items")) read(*items, column, depth + 1);
    } else if (TimeUnit const unit = unit_of(text_of(type, "logicalType"));
               unit != TimeUnit::none) {
      if (kind == "int" || kind == "long") units_.emplace(column, unit);
    } else if (Json const* const inner = type.find("type"); inner && kind.empty()) {
      read(*inner, column, depth + 1);
    }
  }

  void fields(Json const& record, std::string const& prefix, int depth) {
    Json const* const all = record.find("fields");
    if (!all || depth > deepest) return;
    for (Json const& field : all->items()) {
      Json const* const type = field.find("type");
      if (type) read(*type, prefix + std::string(text_of(field, "name")), depth);
    }
  }

  std::map<std::string, Json const*, std::less<>> records_;
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
