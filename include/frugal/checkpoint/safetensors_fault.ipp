// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/safetensors_fault.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::string safetensors_quoted(std::string_view text) {
  constexpr std::size_t most = 100;
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char const c : text.substr(0, most)) {
    if (auto const code = static_cast<unsigned char>(c); code < 0x20 || code >= 0x7f) {
      out += "\\x";
      out += digits[code >> 4];
      out += digits[code & 15U];
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  out += '"';
  if (text.size() > most) out += " and " + std::to_string(text.size() - most) + " bytes more";
  return out;
}

FRUGAL_INLINE void safetensors_fail(std::string const& file, std::string const& part,
                                    std::uint64_t byte, std::string what, std::string why,
                                    std::string fix) {
  std::string where = file;
  if (!part.empty()) where += ", " + part;
  if (byte != safetensors_no_place) where += ", byte " + std::to_string(byte);
  throw FormatError({.what = std::move(what),
                     .where = std::move(where),
                     .why = std::move(why),
                     .fix = std::move(fix)});
}

}  // namespace frugal::detail
