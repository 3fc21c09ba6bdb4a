// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Text that fits a terminal: paragraphs and tables whose lines break between words.
namespace frugal::watch {

/// Lines of at most `width` characters; a word that is longer has a line of its own.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// A table with two spaces between columns. Each column is as wide as its widest cell, but no wider
/// than `widths` says; the cells of one that is cut break between words. All rows have as many
/// cells as `widths`.
std::string columns(std::vector<std::vector<std::string>> const& rows,
                    std::vector<std::size_t> widths);

}  // namespace frugal::watch

#ifndef FRUGAL_COMPILED
#include <frugal/base/columns.ipp>
#endif
