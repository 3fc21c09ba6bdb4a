// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

// Writes JSON by hand: otherwise everything that includes the checkpoint writer would pay for a
// JSON library, which takes as long to compile as all the rest. Reading uses a library.
namespace frugal::detail {

/// Appends a JSON string. Bytes that are not UTF-8 become U+FFFD, as as_utf8 has it. Escapes only
/// what RFC 8259, section 7, requires, in the short form where one exists, as most writers do.
void append_json(std::string& out, std::string_view text);

/// Appends the shortest digits that read back as the same double; null for a non-finite number,
/// which JSON cannot express.
void append_json(std::string& out, double number);

void append_json(std::string& out, std::integral auto number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/json_text.ipp>
#endif
