// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/data/avro/schema.hpp>
#include <frugal/data/tables/cell.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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
