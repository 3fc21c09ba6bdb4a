// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/base/utf8.hpp>

/// Columns of a terminal that a text takes. wcwidth() would do, but depends on the locale, which a
/// library does not set.
namespace frugal::watch {

namespace detail {

std::size_t columns_of(char32_t c);

/// The first character of a text; a byte that is not UTF-8 is one by itself.
inline frugal::detail::CodePoint first_character(std::string_view text) {
  auto first = frugal::detail::code_point_at(text, 0);
  if (!first.valid) first.bytes = 1;
  return first;
}

}  // namespace detail

/// Columns of a text without control characters (see printable).
std::size_t text_width(std::string_view text);

/// The longest beginning that takes at most `columns`; never half a character.
std::string_view truncated(std::string_view text, std::size_t columns);

/// The text with `?` for control characters, for those that turn the direction of writing, and for
/// bytes that are not UTF-8: a metric's name is the user's, and must not move the cursor.
std::string printable(std::string_view text);

}  // namespace frugal::watch

/// Text that fits a terminal: paragraphs and tables whose lines break between words.
namespace frugal::watch {

/// Lines of at most `width` characters; a word that is longer has a line of its own.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// A table with two spaces between columns. Each column is as wide as its widest cell, but no wider
/// than `widths` says; the cells of one that is cut break between words. All rows have as many
/// cells as `widths`.
std::string columns(std::vector<std::vector<std::string>> const& rows,
                    std::vector<std::size_t> widths);

/// Widths with which columns() makes a table of at most `columns`, as far as its longest words let it: the
/// widest column is cut first.
std::vector<std::size_t> widths_within(std::vector<std::vector<std::string>> const& rows,
                                       std::size_t columns);

}  // namespace frugal::watch

#ifndef FRUGAL_COMPILED
#include <frugal/base/text_width.ipp>
#endif
