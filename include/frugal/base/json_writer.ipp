// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_writer.hpp>
#include <frugal/inline.hpp>

#include <frugal/base/utf8.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace frugal::detail {

FRUGAL_INLINE void append_json(std::string& out, std::string_view text) {
  constexpr std::string_view special = "\b\f\n\r\t\"\\";
  constexpr std::string_view letters = "bfnrt\"\\";
  constexpr std::string_view digits = "0123456789abcdef";
  auto const is_plain = [](char c) {
    return c >= 0x20 && static_cast<unsigned char>(c) < 0x80 && c != '"' && c != '\\';
  };
  out += '"';
  for (auto at = text.begin(); at != text.end();) {
    auto const end = std::find_if_not(at, text.end(), is_plain);
    out.append(at, end);
    if (end == text.end()) break;
    at = end + 1;
    auto const code = static_cast<unsigned char>(*end);
    if (code >= 0x80) {
      CodePoint const next = code_point_at(text, static_cast<std::size_t>(end - text.begin()));
      append_utf8(out, next.value);
      if (next.valid) at = end + static_cast<std::ptrdiff_t>(next.bytes);
    } else if (auto const found = special.find(*end); found != std::string_view::npos) {
      out += '\\';
      out += letters[found];
    } else {
      out += "\\u00";
      out += digits[code >> 4U];
      out += digits[code & 15U];
    }
  }
  out += '"';
}

FRUGAL_INLINE void append_json(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

FRUGAL_INLINE JsonWriter& JsonWriter::end() {
  bool const in_array = (open_.back() & 1) != 0;
  bool const lines = layout() == JsonLayout::lines && !is_empty();
  open_.pop_back();
  if (lines) line_ = indent_ * open_.size();
  break_line();
  out_ += in_array ? ']' : '}';
  return *this;
}

FRUGAL_INLINE JsonWriter& JsonWriter::key(std::string_view name) {
  begin_value();
  append_json(out_, name);
  out_ += layout() == JsonLayout::tight ? ":" : ": ";
  has_key_ = true;
  return *this;
}

FRUGAL_INLINE JsonWriter& JsonWriter::value(std::string_view text) {
  begin_value();
  append_json(out_, text);
  return *this;
}

FRUGAL_INLINE JsonWriter& JsonWriter::value(double number) {
  begin_value();
  append_json(out_, number);
  return *this;
}

FRUGAL_INLINE JsonWriter& JsonWriter::raw(std::string_view json) {
  begin_value();
  out_ += json;
  return *this;
}

FRUGAL_INLINE std::string JsonWriter::str(std::string_view after) {
  while (!open_.empty()) end();
  out_ += after;
  return std::move(out_);
}

FRUGAL_INLINE JsonWriter& JsonWriter::open(char bracket, JsonLayout wanted) {
  begin_value();
  out_ += bracket;
  if (wanted == JsonLayout::as_around) wanted = layout();
  open_ += static_cast<char>(static_cast<int>(wanted) << 1 | (bracket == '[' ? 1 : 0));
  return *this;
}

FRUGAL_INLINE void JsonWriter::begin_value() {
  if (std::exchange(has_key_, false) || open_.empty()) return;
  if (layout() == JsonLayout::lines) line_ = indent_ * open_.size();
  if (!is_empty()) out_ += layout() == JsonLayout::spaced && !line_ ? ", " : ",";
  break_line();
}

FRUGAL_INLINE void JsonWriter::break_line() {
  if (!line_) return;
  out_ += '\n';
  out_.append(*std::exchange(line_, std::nullopt), ' ');
}

}  // namespace frugal::detail
