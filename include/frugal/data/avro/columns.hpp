// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/data/avro/schema.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Gives the leaves of a record their columns: those of `wanted`, in its order, or all of them.
/// Fields of a record within the record have names with a dot, "box.width". Returns the names.
///
/// Errors  SettingsError for a column that does not exist, or whose type no cell holds.
inline std::vector<std::string> choose_columns(AvroType& record,
                                               std::vector<std::string> const& wanted,
                                               std::string const& where) {
  using Kind = AvroType::Kind;
  std::vector<std::pair<std::string, AvroType*>> leaves;
  auto const collect = [&](auto const& self, AvroType& type, std::string const& prefix) -> void {
    for (AvroType& field : type.parts) {
      if (field.kind == Kind::record) {
        self(self, field, prefix + field.name + '.');
      } else {
        leaves.emplace_back(prefix + field.name, &field);
      }
    }
  };
  collect(collect, record, "");
  auto const one_cell = [](auto const& self, AvroType const& type) -> bool {
    switch (type.kind) {
      case Kind::map:
      case Kind::record:
        return false;
      case Kind::list:
        return type.parts[0].kind != Kind::null && type.parts[0].kind != Kind::list &&
               type.parts[0].kind != Kind::either && self(self, type.parts[0]);
      case Kind::either:
        return std::all_of(type.parts.begin(), type.parts.end(),
                           [&](AvroType const& each) { return self(self, each); });
      default:
        return true;
    }
  };
  std::vector<std::string> names;
  auto const choose = [&](std::pair<std::string, AvroType*> const& leaf) {
    if (!one_cell(one_cell, *leaf.second)) {
      throw SettingsError({.what = "a column's type is not read",
                           .where = where + ", column " + leaf.first,
                           .why = "cells are numbers, booleans, texts, bytes, lists of these, and "
                                  "unions of those; no map, and no record or union in a list",
                           .fix = "Leave the column out by naming the others in `columns`."});
    }
    leaf.second->column = static_cast<std::ptrdiff_t>(names.size());
    names.push_back(leaf.first);
  };
  if (wanted.empty()) {
    for (auto const& leaf : leaves) choose(leaf);
  }
  for (std::string const& column : wanted) {
    auto const found = std::find_if(leaves.begin(), leaves.end(),
                                    [&](auto const& leaf) { return leaf.first == column; });
    if (found == leaves.end() || found->second->column >= 0) {
      std::string all;
      for (auto const& leaf : leaves) all += (all.empty() ? "" : ", ") + leaf.first;
      throw SettingsError({.what = found == leaves.end() ? "there is no column " + column
                                                         : "a column is named twice: " + column,
                           .where = where,
                           .why = "the columns are " + all,
                           .fix = "Name each of those that you read once."});
    }
    choose(*found);
  }
  return names;
}

}  // namespace frugal::detail
