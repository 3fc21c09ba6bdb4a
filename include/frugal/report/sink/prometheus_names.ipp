// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/sink/prometheus_names.hpp>

#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>

#include <charconv>
#include <cmath>

namespace frugal::detail {

FRUGAL_INLINE std::string prometheus_name(std::string_view name) {
  auto const is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  auto const is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  auto const is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string out;
  char before = '_';
  for (char const c : name) {
    if (is_upper(c)) {
      if (is_lower(before) || is_digit(before)) out += '_';
      out += static_cast<char>(c - 'A' + 'a');
    } else if (is_lower(c) || is_digit(c)) {
      out += c;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
    before = c;
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  if (out.empty()) out = "unnamed";
  for (std::string_view const suffix : {"_total", "_count", "_sum", "_bucket", "_info"}) {
    if (out.ends_with(suffix)) return out + "_value";
  }
  return out;
}

FRUGAL_INLINE std::string prometheus_number(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  char digits[32];
  auto const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  return {digits, end};
}

FRUGAL_INLINE std::string prometheus_escaped(std::string_view text, bool quotes) {
  std::string out;
  for (char const c : as_utf8(text)) {
    if (c == '\\' || (quotes && c == '"')) out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace frugal::detail
