// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/tables/row.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test {

inline std::string hex(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (char const c : bytes) {
    out += digits[static_cast<unsigned char>(c) >> 4];
    out += digits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

/// A cell as tests/interop/rows.py writes it.
inline std::string cell_line(frugal::Cell const& cell) {
  struct Line {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool value) const { return value ? "bool 1" : "bool 0"; }
    std::string operator()(std::int64_t value) const { return "int " + std::to_string(value); }
    std::string operator()(double value) const {
      char text[40];
      std::snprintf(text, sizeof text, "%.17g", value);
      return std::string("float ") + text;
    }
    std::string operator()(std::string const& text) const { return "text " + hex(text); }
    std::string operator()(frugal::Numbers const& list) const {
      return "list " + std::string(frugal::dtype_name(list.dtype)) + ' ' + hex(list.bytes);
    }
    std::string operator()(std::vector<std::string> const& texts) const {
      std::string line = "texts";
      for (std::string const& text : texts) line += ' ' + hex(text) + '.';
      return line;
    }
  };
  return std::visit(Line{}, cell);
}

/// One line for each cell: the column, a tab, and the cell; an empty line ends a row.
inline std::string row_lines(frugal::Row const& row) {
  std::string lines;
  for (std::size_t i = 0; i < row.columns().size(); ++i) {
    lines += row.columns()[i] + '\t' + cell_line(row.cells()[i]) + '\n';
  }
  return lines + '\n';
}

}  // namespace frugal_test
