// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/utf8.hpp>
#include <frugal/data/text/tokenise.hpp>

#include <utf8proc.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

namespace frugal {

/// What is done to a text before it is cut into words; the defaults are those of an uncased BERT.
struct BertText {
  bool lower_case = true;  ///< false for a cased model
  std::optional<bool>
      strip_accents{};        ///< decompose (NFD) and drop marks; as lower_case unless set
  bool clean = true;          ///< drop control characters and U+FFFD; any white space is a space
  bool space_chinese = true;  ///< each Chinese character is a word

  /// The settings, and the version of the Unicode tables, as a text.
  std::string settings() const {
    auto const bit = [](bool on) { return on ? "1" : "0"; };
    return std::string("lower ") + bit(lower_case) + ", strip " +
           bit(strip_accents.value_or(lower_case)) + ", clean " + bit(clean) + ", chinese " +
           bit(space_chinese) + ", unicode " + utf8proc_unicode_version();
  }
};

/// A word, and where each byte of it comes from: the code point of the text that became it.
struct BertWord {
  std::string_view text;
  std::span<TextSpan const> from;  ///< one for each byte of `text`
};

/// Cuts texts into words as the BERT family does: cleaned, Chinese characters apart, accents
/// stripped, lower-cased; cut at white space, each punctuation character a word. Const, and safe to
/// call from several threads. Bytes that are no UTF-8 count as U+FFFD.
///
/// Source  BasicTokenizer of Devlin et al., "BERT" (github.com/google-research/bert,
///         tokenization.py), as Python's `tokenizers` has it. Unicode's tables are utf8proc's, of
///         Unicode 15 in version 2.8; those of `tokenizers` are of Unicode 8, so a mark, a format
///         character or a punctuation character that is younger is none there.
class BertWords {
 public:
  explicit BertWords(BertText settings = {})
      : settings_(settings), strip_(settings.strip_accents.value_or(settings.lower_case)) {
    for (char32_t c = 0; c < 0x80; ++c) ascii_[c] = ascii_of(c);
  }

  /// Calls `f(BertWord)` for each word of a text, in order; a word is valid during the call.
  template <class F>
  void operator()(std::string_view text, F&& f) const {
    Word word;
    read(text, word, f);
    word.finish(f);
  }

  /// Calls `f(BertWord)` once, with the whole text as the words are cut from it: cleaned, Chinese
  /// characters between spaces, accents stripped, lower-cased.
  template <class F>
  void normalize(std::string_view text, F&& f) const {
    Word word{.whole = true};
    read(text, word, f);
    f(BertWord{word.text, word.from});
  }

  BertText const& settings() const { return settings_; }

 private:
  using Kind = detail::BertKind;
  struct Word;

  template <class F>
  void read(std::string_view text, Word& word, F& f) const {
    std::size_t at = 0;
    while (at < text.size()) {
      auto const byte = static_cast<unsigned char>(text[at]);
      if (byte < 0x80) {
        Ascii const& as = ascii_[byte];
        if (!as.dropped) {
          word.settle(f);
          if (as.kind == Kind::letter) {
            word.text.push_back(as.lower);
            word.from.push_back({at, at + 1});
          } else {
            bool const blank = as.kind == Kind::space && settings_.clean;
            word.put(blank ? ' ' : byte, {at, at + 1}, as.kind, f);
          }
        }
        ++at;
      } else {
        detail::CodePoint const next = detail::code_point_at(text, at);
        put_normalized(next.value, {at, at + next.bytes}, word, f);
        at += next.bytes;
      }
    }
    word.settle(f);
  }

  struct Ascii {
    Kind kind = Kind::letter;
    bool dropped = false;
    char lower = 0;
  };
  struct Mark {
    int order = 0;  ///< the canonical combining class
    char32_t value = 0;
    TextSpan from{};
  };

  /// The word that is being read.
  struct Word {
    bool whole = false;  ///< the text is not cut
    std::string text{};
    std::vector<TextSpan> from{};
    std::vector<Mark> marks{};  ///< since the last character that is none, for canonical order

    template <class F>
    void put(char32_t value, TextSpan span, Kind kind, F& f) {
      if (kind != Kind::letter) finish(f);
      if (kind == Kind::space && !whole) return;
      std::size_t const before = text.size();
      detail::append_utf8(text, value);
      from.insert(from.end(), text.size() - before, span);
      if (kind == Kind::punctuation) finish(f);
    }
    template <class F>
    void finish(F& f) {
      if (text.empty() || whole) return;
      f(BertWord{text, from});
      text.clear();
      from.clear();
    }
    /// A Chinese character is a word.
    template <class F>
    void part(TextSpan span, F& f) {
      settle(f);
      put(' ', span, Kind::space, f);
    }
    /// Puts the marks that wait for the next character, in canonical order. Where they come from
    /// stays in the order of the text.
    template <class F>
    void settle(F& f) {
      if (marks.empty()) return;
      std::vector<Mark> sorted = std::exchange(marks, {});
      std::vector<TextSpan> spans;
      for (Mark const& mark : sorted) spans.push_back(mark.from);
      for (std::size_t i = 1; i < sorted.size(); ++i) {  // an insertion sort is stable
        for (std::size_t k = i; k > 0 && sorted[k - 1].order > sorted[k].order; --k) {
          std::swap(sorted[k - 1], sorted[k]);
        }
      }
      for (std::size_t i = 0; i < sorted.size(); ++i) {
        put(sorted[i].value, spans[i], detail::bert_kind(sorted[i].value), f);
      }
    }
  };

  Ascii ascii_of(char32_t c) const {
    bool const upper = c >= 'A' && c <= 'Z' && settings_.lower_case;
    return {.kind = detail::bert_kind(c),
            .dropped = settings_.clean && detail::bert_drops(c),
            .lower = static_cast<char>(upper ? c + ('a' - 'A') : c)};
  }

  /// A character that is not ASCII: what of it comes into the word.
  template <class F>
  void put_normalized(char32_t c, TextSpan span, Word& word, F& f) const {
    if (settings_.clean) {
      if (detail::bert_drops(c)) return;
      if (detail::white_space(c)) {
        word.settle(f);
        return word.put(' ', span, Kind::space, f);
      }
    }
    bool const apart = settings_.space_chinese && detail::bert_chinese(c);
    if (apart) word.part(span, f);
    if (strip_) {
      std::array<utf8proc_int32_t, 8> parts;  // no character decomposes into more than four
      auto const count = utf8proc_decompose_char(
          static_cast<utf8proc_int32_t>(c), parts.data(),
          static_cast<utf8proc_ssize_t>(parts.size()),
          static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), nullptr);
      for (utf8proc_ssize_t i = 0; i < count; ++i) {
        decomposed(parts[static_cast<std::size_t>(i)], span, word, f);
      }
    } else {
      lowered(c, span, word, f);
    }
    if (apart) word.part(span, f);
  }

  /// A character of a decomposition. Dropping marks before they are ordered leaves the same as
  /// after.
  template <class F>
  void decomposed(utf8proc_int32_t c, TextSpan span, Word& word, F& f) const {
    utf8proc_property_t const* const property = utf8proc_get_property(c);
    if (property->category == UTF8PROC_CATEGORY_MN) return;
    if (property->combining_class != 0) {
      auto const value = static_cast<char32_t>(settings_.lower_case ? utf8proc_tolower(c) : c);
      word.marks.push_back({property->combining_class, value, span});
    } else {
      word.settle(f);
      lowered(static_cast<char32_t>(c), span, word, f);
    }
  }

  template <class F>
  void lowered(char32_t c, TextSpan span, Word& word, F& f) const {
    if (settings_.lower_case) {
      if (c == 0x130) {  // the one capital whose small form is two characters: i and a dot above
        word.put('i', span, Kind::letter, f);
        return word.put(0x307, span, Kind::letter, f);
      }
      c = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
    }
    word.put(c, span, detail::bert_kind(c), f);
  }

  BertText settings_;
  bool strip_;
  std::array<Ascii, 0x80> ascii_{};
};

}  // namespace frugal
