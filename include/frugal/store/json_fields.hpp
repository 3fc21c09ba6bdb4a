// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/json.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Reads fields of JSON files that frugal writes. Whatever is missing or of another kind than it
/// has to be is the Fault that is given, with a `why` that names it, as a FormatError.
class JsonFields {
 public:
  explicit JsonFields(Fault fault) : fault_(std::move(fault)) {}

  /// An object whose "format" is `format`.
  Json parse(std::string_view text, std::string_view format) const {
    std::optional<Json> all = Json::parse(std::string(text));
    if (!all || !all->is(Json::Kind::object)) fail("it is no JSON object");
    Json const* const found = all->find("format");
    if (found == nullptr || !found->is(Json::Kind::text) || found->text() != format) {
      fail("\"format\" does not say \"" + std::string(format) + "\"");
    }
    return *std::move(all);
  }

  Json const& member(Json const& parent, char const* name) const {
    if (!parent.is(Json::Kind::object)) {
      fail("an object is missing where \"" + std::string(name) + "\" goes");
    }
    Json const* const found = parent.find(name);
    if (found == nullptr) fail("\"" + std::string(name) + "\" is missing");
    return *found;
  }

  std::vector<Json> const& array(Json const& parent, char const* name) const {
    Json const& value = member(parent, name);
    if (!value.is(Json::Kind::array)) fail("\"" + std::string(name) + "\" is no array");
    return value.items();
  }

  /// The members.
  std::vector<Json> const& object(Json const& parent, char const* name) const {
    Json const& value = member(parent, name);
    if (!value.is(Json::Kind::object)) fail("\"" + std::string(name) + "\" is no object");
    return value.items();
  }

  std::uint64_t number(Json const& parent, char const* name) const {
    auto const value = member(parent, name).as_unsigned();
    if (!value || *value > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      fail("\"" + std::string(name) + "\" is no number from 0 to 2^63 - 1");
    }
    return *value;
  }

  /// Seconds since 1970.
  std::int64_t time(Json const& parent, char const* name) const {
    return static_cast<std::int64_t>(number(parent, name));
  }

  /// Empty if it is no string; then it is no name either.
  std::string text(Json const& parent, char const* name) const {
    Json const& value = member(parent, name);
    return value.is(Json::Kind::text) ? value.text() : std::string();
  }

  /// As hex_of writes it.
  std::uint64_t hash(Json const& parent, char const* name) const {
    std::uint64_t out = 0;
    std::string const digits = text(parent, name);
    for (char const c : digits) {
      auto const digit = std::string_view("0123456789abcdef").find(c);
      if (digit == std::string_view::npos) fail("a hash has a digit that is none");
      out = out << 4U | digit;
    }
    if (digits.size() != 16) fail("a hash does not have 16 digits");
    return out;
  }

  [[noreturn]] void fail(std::string why) const {
    Fault fault = fault_;
    fault.why = std::move(why);
    throw FormatError(std::move(fault));
  }

 private:
  Fault fault_;
};

}  // namespace frugal::detail
