// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace frugal::detail {

/// The text for HTML: markup, quotes and control characters escaped, bytes that are no UTF-8
/// replaced. Safe between tags and in quoted attributes.
std::string as_html(std::string_view text);

/// 1234567 as 1,234,567.
std::string grouped(std::uint64_t number);

inline std::string percent_of(std::uint64_t part, std::uint64_t of) {
  return of == 0 ? "0%" : fixed(100 * static_cast<double>(part) / static_cast<double>(of), 2) + "%";
}

/// The first bytes of a text, not cut within a UTF-8 character.
std::string beginning(std::string text, std::size_t bytes);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/html_text.ipp>
#endif
