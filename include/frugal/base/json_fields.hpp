// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Reads fields of JSON files that frugal writes. A missing, unknown, duplicate or mistyped field
/// throws the given Fault as a FormatError; its `why` names the field and its byte offset.
class JsonFields {
 public:
  explicit JsonFields(Fault fault) : fault_(std::move(fault)) {}

  /// Parses an object whose "format" is `format`.
  Json parse(std::string_view text, std::string_view format) const;

  /// The version, at least 1. The caller checks for versions newer than it knows.
  std::uint64_t version(Json const& all) const;

  /// Refuses unknown and duplicate members: an unknown member cannot be judged.
  void only(Json const& parent, std::initializer_list<std::string_view> names) const;

  Json const& member(Json const& parent, char const* name) const;

  std::vector<Json> const& array(Json const& parent, char const* name) const;

  /// The members of an object; their names are unique.
  std::vector<Json> const& object(Json const& parent, char const* name) const;

  std::uint64_t number(Json const& parent, char const* name) const;

  /// Seconds since 1970.
  std::int64_t time(Json const& parent, char const* name) const {
    return static_cast<std::int64_t>(number(parent, name));
  }

  /// Empty if it is not a string; no valid name is empty.
  std::string text(Json const& parent, char const* name) const;

  /// A hash in the form of hex_of.
  std::uint64_t hash(Json const& parent, char const* name) const;

  /// Throws a fault of the whole file.
  [[noreturn]] void fail(std::string why) const;
  /// Throws a fault of one value.
  [[noreturn]] void fail(Json const& value, std::string why) const {
    fail_at(value.at(), std::move(why));
  }

 private:
  std::vector<Json> const& members(Json const& parent) const;

  [[noreturn]] void fail_at(std::size_t byte, std::string why) const;

  Fault fault_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/json_fields.ipp>
#endif
