// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
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
  FRUGAL_INLINE Json parse(std::string_view text, std::string_view format) const {
    JsonError error;
    std::optional<Json> all = Json::parse(std::string(text), &error);
    if (!all) fail_at(error.at, "it is not a JSON object");
    if (!all->is(Json::Kind::object)) fail(*all, "it is not a JSON object");
    Json const* const found = all->find("format");
    if (found == nullptr || !found->is(Json::Kind::text) || found->text() != format) {
      fail(found == nullptr ? *all : *found,
           "\"format\" does not say \"" + std::string(format) + "\"");
    }
    return *std::move(all);
  }

  /// The version, at least 1. The caller checks for versions newer than it knows.
  FRUGAL_INLINE std::uint64_t version(Json const& all) const {
    std::uint64_t const found = number(all, "version");
    if (found == 0) fail(member(all, "version"), "there was never a version 0");
    return found;
  }

  /// Refuses unknown and duplicate members: an unknown member cannot be judged.
  FRUGAL_INLINE void only(Json const& parent, std::initializer_list<std::string_view> names) const {
    for (Json const& item : members(parent)) {
      if (std::find(names.begin(), names.end(), item.name()) == names.end()) {
        fail(item, "\"" + item.name() + "\" is not known");
      }
    }
  }

  FRUGAL_INLINE Json const& member(Json const& parent, char const* name) const {
    if (!parent.is(Json::Kind::object)) {
      fail(parent, "an object is missing where \"" + std::string(name) + "\" goes");
    }
    Json const* const found = parent.find(name);
    if (found == nullptr) fail(parent, "\"" + std::string(name) + "\" is missing");
    return *found;
  }

  FRUGAL_INLINE std::vector<Json> const& array(Json const& parent, char const* name) const {
    Json const& value = member(parent, name);
    if (!value.is(Json::Kind::array)) fail(value, "\"" + std::string(name) + "\" is not an array");
    return value.items();
  }

  /// The members of an object; their names are unique.
  FRUGAL_INLINE std::vector<Json> const& object(Json const& parent, char const* name) const {
    Json const& value = member(parent, name);
    if (!value.is(Json::Kind::object))
      fail(value, "\"" + std::string(name) + "\" is not an object");
    return members(value);
  }

  FRUGAL_INLINE std::uint64_t number(Json const& parent, char const* name) const {
    Json const& found = member(parent, name);
    auto const value = found.as_unsigned();
    if (!value || *value > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      fail(found, "\"" + std::string(name) + "\" is not a number from 0 to 2^63 - 1");
    }
    return *value;
  }

  /// Seconds since 1970.
  std::int64_t time(Json const& parent, char const* name) const {
    return static_cast<std::int64_t>(number(parent, name));
  }

  /// Empty if it is not a string; no valid name is empty.
  FRUGAL_INLINE std::string text(Json const& parent, char const* name) const {
    Json const& value = member(parent, name);
    return value.is(Json::Kind::text) ? value.text() : std::string();
  }

  /// A hash in the form of hex_of.
  FRUGAL_INLINE std::uint64_t hash(Json const& parent, char const* name) const {
    std::uint64_t out = 0;
    Json const& value = member(parent, name);
    std::string const digits = text(parent, name);
    for (char const c : digits) {
      auto const digit = std::string_view("0123456789abcdef").find(c);
      if (digit == std::string_view::npos) fail(value, "a hash has an invalid digit");
      out = out << 4U | digit;
    }
    if (digits.size() != 16) fail(value, "a hash does not have 16 digits");
    return out;
  }

  /// Throws a fault of the whole file.
  [[noreturn]] FRUGAL_INLINE void fail(std::string why) const {
    Fault fault = fault_;
    fault.why = std::move(why);
    throw FormatError(std::move(fault));
  }
  /// Throws a fault of one value.
  [[noreturn]] void fail(Json const& value, std::string why) const {
    fail_at(value.at(), std::move(why));
  }

 private:
  FRUGAL_INLINE std::vector<Json> const& members(Json const& parent) const {
    std::set<std::string_view> names;
    for (Json const& item : parent.items()) {
      if (!names.insert(item.name()).second) fail(item, "\"" + item.name() + "\" is there twice");
    }
    return parent.items();
  }

  [[noreturn]] FRUGAL_INLINE void fail_at(std::size_t byte, std::string why) const {
    Fault fault = fault_;
    fault.where += ", byte " + std::to_string(byte);
    fault.why = std::move(why);
    throw FormatError(std::move(fault));
  }

  Fault fault_;
};

}  // namespace frugal::detail
