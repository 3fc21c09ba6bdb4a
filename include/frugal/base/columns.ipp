// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/columns.hpp>

#include <frugal/inline.hpp>

#include <algorithm>

namespace frugal::watch {

FRUGAL_INLINE std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    std::size_t const end = std::min(text.find(' '), text.size());
    std::string_view const word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.push_back(line);
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty() || lines.empty()) lines.push_back(line);
  return lines;
}

FRUGAL_INLINE std::string columns(std::vector<std::vector<std::string>> const& rows,
                                  std::vector<std::size_t> widths) {
  std::vector<std::vector<std::vector<std::string>>> cells;
  for (std::vector<std::string> const& row : rows) {
    auto& lines = cells.emplace_back();
    for (std::size_t i = 0; i < widths.size(); ++i) lines.push_back(wrapped(row[i], widths[i]));
  }
  std::vector<std::size_t> taken(widths.size(), 0);
  for (auto const& row : cells) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      // A word that is longer than its column does not push the columns of other rows.
      for (std::string const& line : row[i]) {
        taken[i] = std::max(taken[i], std::min(line.size(), widths[i]));
      }
    }
  }
  std::string text;
  for (auto const& row : cells) {
    std::size_t height = 0;
    for (auto const& cell : row) height = std::max(height, cell.size());
    for (std::size_t at = 0; at < height; ++at) {
      std::string line;
      std::size_t begin = 0;
      for (std::size_t i = 0; i < widths.size(); ++i) {
        if (at < row[i].size() && !row[i][at].empty()) {
          if (line.size() < begin) {
            line.append(begin - line.size(), ' ');
          } else if (!line.empty()) {
            line += "  ";
          }
          line += row[i][at];
        }
        begin += taken[i] + 2;
      }
      text += line + '\n';
    }
  }
  return text;
}

}  // namespace frugal::watch
