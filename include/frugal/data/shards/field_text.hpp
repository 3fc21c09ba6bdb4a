// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace frugal::detail {

[[noreturn]] inline void refuse_field(std::string const& where, std::string what, std::string why) {
  throw DataError({.what = std::move(what),
                   .where = where,
                   .why = std::move(why),
                   .fix = "Check that sample, or leave it out."});
}

/// A whole number in decimal digits, as Python's int() reads it: blanks around it are ignored.
inline std::int64_t integer_of(std::string_view text, std::string const& where) {
  constexpr std::string_view blanks = " \t\r\n\f\v";
  std::string_view digits = text;
  digits.remove_prefix(std::min(digits.find_first_not_of(blanks), digits.size()));
  digits = digits.substr(0, digits.find_last_not_of(blanks) + 1);
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  std::int64_t out = 0;
  auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (error == std::errc::result_out_of_range) {
    refuse_field(where, "a field's number does not fit into 64 bits", "");
  }
  if (error != std::errc() || end != digits.data() + digits.size()) {
    refuse_field(where, "a field is no whole number",
                 "it has " + std::to_string(text.size()) + " bytes and reads \"" +
                     as_utf8(text.substr(0, 40)) + "\"");
  }
  return out;
}

/// Text in UTF-8.
inline std::string_view text_of(std::string_view bytes, std::string const& where) {
  if (!is_utf8(bytes)) refuse_field(where, "a field is no text", "its bytes are not UTF-8");
  return bytes;
}

/// Refuses an object that has a name twice: readers differ in which of the two they take.
inline void require_unique_names(Json const& value, std::string const& where) {
  if (value.is(Json::Kind::object)) {
    std::set<std::string_view> names;
    for (Json const& member : value.items()) {
      if (names.insert(member.name()).second) continue;
      refuse_field(where + ", byte " + std::to_string(member.at()),
                   "a field's JSON has the name \"" + as_utf8(member.name().substr(0, 40)) +
                       "\" twice in an object",
                   "");
    }
  }
  for (Json const& item : value.items()) require_unique_names(item, where);
}

inline Json json_of(std::string_view text, std::string const& where) {
  JsonError error;
  std::optional<Json> out = Json::parse(std::string(text), &error);
  if (!out) {
    refuse_field(where + ", byte " + std::to_string(error.at), "a field is no JSON", error.why);
  }
  require_unique_names(*out, where);
  return *std::move(out);
}

}  // namespace frugal::detail
