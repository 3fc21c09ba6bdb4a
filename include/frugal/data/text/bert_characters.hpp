// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/utf8.hpp>

#include <utf8proc.h>

#include <cstdint>

// Kinds of characters as the BERT family tells them apart; bert_words.hpp is for users.
namespace frugal::detail {

/// What a character is to a word.
enum class BertKind : std::uint8_t { letter, space, punctuation };

inline utf8proc_category_t category_of(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

/// What cleaning drops. Tab and line ends are white space.
inline bool bert_drops(char32_t c) {
  if (c == 0 || c == replacement_character) return true;
  if (c == '\t' || c == '\n' || c == '\r') return false;
  auto const category = category_of(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO;
}

/// Unicode's property White_Space.
inline bool white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  auto const category = category_of(c);
  return c == 0x85 || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

/// Punctuation is all of ASCII that is neither letter nor digit, and Unicode's categories P*.
inline BertKind bert_kind(char32_t c) {
  if (white_space(c)) return BertKind::space;
  if (c < 0x80) {
    bool const letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    return letter || c < '!' || c > '~' ? BertKind::letter : BertKind::punctuation;
  }
  auto const category = category_of(c);
  bool const punctuation = category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
  return punctuation ? BertKind::punctuation : BertKind::letter;
}

/// Whether a character is in the CJK blocks that BERT names, as `tokenizers` has them: it begins
/// extension E at U+2B920.
inline bool bert_chinese(char32_t c) {
  struct Range {
    char32_t first, last;
  };
  for (Range const range : {Range{0x4e00, 0x9fff}, Range{0x3400, 0x4dbf}, Range{0x20000, 0x2a6df},
                            Range{0x2a700, 0x2b81f}, Range{0x2b920, 0x2ceaf}, Range{0xf900, 0xfaff},
                            Range{0x2f800, 0x2fa1f}}) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

}  // namespace frugal::detail
