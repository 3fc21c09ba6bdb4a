// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace frugal::detail {

/// Reads fields of JSON files that frugal writes. Whatever is missing or of another kind than it
/// has to be is the Fault that is given, with a `why` that names it, as a FormatError.
class JsonFields {
 public:
  using Json = nlohmann::json;

  explicit JsonFields(Fault fault) : fault_(std::move(fault)) {}

  /// An object whose "format" is `format`.
  Json parse(std::string_view text, std::string_view format) const {
    Json all = Json::parse(text.begin(), text.end(), nullptr, false);
    if (!all.is_object()) fail("it is no JSON object");
    auto const found = all.find("format");
    if (found == all.end() || !found->is_string() || *found != format) {
      fail("\"format\" does not say \"" + std::string(format) + "\"");
    }
    return all;
  }

  Json const& member(Json const& parent, char const* name) const {
    if (!parent.is_object()) fail("an object is missing where \"" + std::string(name) + "\" goes");
    auto const found = parent.find(name);
    if (found == parent.end()) fail("\"" + std::string(name) + "\" is missing");
    return *found;
  }

  Json const& array(Json const& parent, char const* name) const {
    Json const& value = member(parent, name);
    if (!value.is_array()) fail("\"" + std::string(name) + "\" is no array");
    return value;
  }

  Json const& object(Json const& parent, char const* name) const {
    Json const& value = member(parent, name);
    if (!value.is_object()) fail("\"" + std::string(name) + "\" is no object");
    return value;
  }

  std::uint64_t number(Json const& parent, char const* name) const {
    Json const& value = member(parent, name);
    if (!value.is_number_unsigned() ||
        value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      fail("\"" + std::string(name) + "\" is no number from 0 to 2^63 - 1");
    }
    return value.get<std::uint64_t>();
  }

  /// Seconds since 1970.
  std::int64_t time(Json const& parent, char const* name) const {
    return static_cast<std::int64_t>(number(parent, name));
  }

  /// Empty if it is no string; then it is no name either.
  std::string text(Json const& parent, char const* name) const {
    Json const& value = member(parent, name);
    return value.is_string() ? value.get<std::string>() : std::string();
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
