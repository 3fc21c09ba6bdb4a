// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/text_width.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace frugal::watch::detail {

FRUGAL_INLINE std::size_t columns_of(char32_t c) {
  using Range = std::pair<char32_t, char32_t>;
  // Combining marks, joiners and variation selectors that are met in names.
  constexpr std::array<Range, 5> none{
      {{0x300, 0x36F}, {0x1AB0, 0x1AFF}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}}};
  // East Asian wide and emoji (Unicode annex 11), in blocks.
  constexpr std::array<Range, 8> two{{{0x1100, 0x115F},
                                      {0x2E80, 0x303E},
                                      {0x3041, 0xA4CF},
                                      {0xAC00, 0xD7A3},
                                      {0xF900, 0xFAFF},
                                      {0xFF00, 0xFF60},
                                      {0x1F300, 0x1FAFF},
                                      {0x20000, 0x3FFFD}}};
  for (auto const& [from, to] : none) {
    if (c >= from && c <= to) return 0;
  }
  for (auto const& [from, to] : two) {
    if (c >= from && c <= to) return 2;
  }
  return 1;
}

}  // namespace frugal::watch::detail

namespace frugal::watch {

FRUGAL_INLINE std::size_t text_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    auto const next = detail::first_character(text);
    columns += detail::columns_of(next.value);
    text.remove_prefix(next.bytes);
  }
  return columns;
}

FRUGAL_INLINE std::string_view truncated(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  while (end < text.size()) {
    auto const next = detail::first_character(text.substr(end));
    std::size_t const width = detail::columns_of(next.value);
    if (width > columns) break;
    columns -= width;
    end += next.bytes;
  }
  return text.substr(0, end);
}

FRUGAL_INLINE std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    auto const next = detail::first_character(text);
    bool const control = next.value < 0x20 || (next.value >= 0x7F && next.value < 0xA0) ||
                         (next.value >= 0x2028 && next.value <= 0x202E) ||
                         (next.value >= 0x2066 && next.value <= 0x2069);
    if (!next.valid || control) {
      result += '?';
    } else {
      result += text.substr(0, next.bytes);
    }
    text.remove_prefix(next.bytes);
  }
  return result;
}

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

FRUGAL_INLINE std::vector<std::size_t> widths_within(
    std::vector<std::vector<std::string>> const& rows, std::size_t columns) {
  std::vector<std::size_t> widths(rows.front().size(), 0), words(widths);
  for (std::vector<std::string> const& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
      for (std::string const& word : wrapped(row[i], 1)) words[i] = std::max(words[i], word.size());
    }
  }
  auto const taken = [&] {
    return std::accumulate(widths.begin(), widths.end(), 2 * (widths.size() - 1));
  };
  while (taken() > columns) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] <= words[i]) continue;
      if (widest == widths.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }
  return widths;
}

}  // namespace frugal::watch
