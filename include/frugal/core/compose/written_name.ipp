// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/written_name.hpp>

#include <frugal/inline.hpp>

#include <cstdint>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void erase_scope(std::string& text, std::string_view scope) {
  std::size_t at = 0;
  while ((at = text.find(scope, at)) != std::string::npos) {
    if (at != 0 && in_identifier(text[at - 1])) {
      at += scope.size();
    } else {
      text.erase(at, scope.size());
    }
  }
}

FRUGAL_INLINE std::string plain_spelling(std::string_view compiled) {
  std::string text(compiled);
  if (text.find("(lambda at ") != std::string::npos || text.find("<lambda") != std::string::npos ||
      text.find("'lambda") != std::string::npos) {
    return "lambda";
  }
  for (std::string_view const type : {"struct", "class", "union", "enum"}) {
    std::string const word(type);
    for (std::string const& spelt :
         {"(unnamed " + word + " at ", "(anonymous " + word + " at ", "<unnamed " + word + ">"}) {
      if (text.find(spelt) != std::string::npos) return "unnamed";
    }
  }
  for (std::string_view const scope : {"frugal::detail::", "frugal::", "(anonymous namespace)::",
                                       "{anonymous}::", "<unnamed>::"}) {
    erase_scope(text, scope);
  }
  for (std::string_view const end : {")::", "]::"}) {
    if (std::size_t const at = text.rfind(end); at != std::string::npos) text.erase(0, at + 3);
  }
  for (std::size_t at; (at = text.find("> >")) != std::string::npos;) text.erase(at + 1, 1);
  // 8ul and 8UL are 8.
  for (std::size_t i = 1; i < text.size(); ++i) {
    bool const suffix = std::string_view("uUlL").find(text[i]) != std::string_view::npos;
    if (suffix && text[i - 1] >= '0' && text[i - 1] <= '9') text.erase(i--, 1);
  }
  return text;
}

FRUGAL_INLINE std::string template_name(std::string_view compiled) {
  std::size_t begin = compiled.size();
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < compiled.size(); ++i) {
    char const c = compiled[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (quoted) continue;
    if (c == '<' && depth++ == 0) begin = i;
    if (c == '>') --depth;
  }
  return plain_spelling(compiled.substr(0, begin));
}

FRUGAL_INLINE std::string written_rational(Rational value) {
  std::int64_t denominator = value.denominator;
  int places = 0;
  std::int64_t power = 1;
  while (denominator > 1 && power % denominator != 0 && places < 15) {
    power *= 10;
    ++places;
  }
  if (denominator < 1 || power % denominator != 0 || value.numerator < 0) {
    return "Rational{" + std::to_string(value.numerator) + ", " +
           std::to_string(value.denominator) + "}";
  }
  std::int64_t const factor = power / denominator;
  std::string fraction = std::to_string(value.numerator % denominator * factor);
  if (fraction.size() < static_cast<std::size_t>(places)) {
    fraction.insert(0, static_cast<std::size_t>(places) - fraction.size(), '0');
  }
  return std::to_string(value.numerator / denominator) + "." + fraction;
}

}  // namespace frugal::detail
