// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: text
#include <doctest/doctest.h>

#include <frugal/data/text/bert_words.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::data_text_bert_words {

using frugal::BertText;
using frugal::BertWords;
using frugal::TextSpan;
using Words = std::vector<std::string>;

Words words_of(std::string_view text, BertText settings = {}) {
  Words words;
  BertWords const cut(settings);
  cut(text, [&](frugal::BertWord const& word) {
    CHECK(word.from.size() == word.text.size());
    words.emplace_back(word.text);
  });
  return words;
}

// Expected values are those of tokenizers 0.23, which tests/interop/wordpiece.py asks about many
// more.
TEST_CASE("words are cut at white space and around punctuation") {
  CHECK(words_of("Hello, world!\tIt's 5 o'clock.") ==
        Words{"hello", ",", "world", "!", "it", "'", "s", "5", "o", "'", "clock", "."});
  CHECK(words_of("a\u2014b\u00a0c\u3000d") == Words{"a", "\u2014", "b", "c", "d"});
  CHECK(words_of("1+1=2 $5 ^_`~") == Words{"1", "+", "1", "=", "2", "$", "5", "^", "_", "`", "~"});
  CHECK(words_of("").empty());
  CHECK(words_of(" \n ").empty());
}

TEST_CASE("accents are stripped and letters lower-cased, unless the model is cased") {
  CHECK(words_of("H\u00c9LL\u00d2 \u1eaecole \u0130") == Words{"hello", "acole", "i"});
  CHECK(words_of("H\u00c9LL\u00d2", {.lower_case = false}) == Words{"H\u00c9LL\u00d2"});
  CHECK(words_of("H\u00c9LL\u00d2", {.strip_accents = false}) == Words{"h\u00e9ll\u00f2"});
  CHECK(words_of("H\u00c9", {.lower_case = false, .strip_accents = true}) == Words{"HE"});
  CHECK(words_of("\u0130", {.strip_accents = false}) == Words{"i\u0307"});
  CHECK(words_of("\ud55c") == Words{"\u1112\u1161\u11ab"});  // Hangul decomposes
}

TEST_CASE("each Chinese character is a word, unless they are not spaced") {
  CHECK(words_of("ab\u4f60\u597dcd\u3042\u3044") ==
        Words{"ab", "\u4f60", "\u597d", "cd\u3042\u3044"});
  CHECK(words_of("ab\u4f60\u597d", {.space_chinese = false}) == Words{"ab\u4f60\u597d"});
}

TEST_CASE(
    "control characters, U+FFFD and invalid bytes are dropped, unless the text is not cleaned") {
  CHECK(words_of(std::string_view("a\0b\x7f\u200d\ufffd\xff\xfe c", 15)) == Words{"ab", "c"});
  CHECK(words_of("a\xff", {.clean = false}) == Words{"a\ufffd"});
  CHECK(words_of("a\u000bb\u0085c") == Words{"abc"});  // controls, though white space in Unicode
  CHECK(words_of("a\u000bb\u0085c", {.clean = false}) == Words{"a", "b", "c"});
}

TEST_CASE("marks that are kept come in canonical order, across what is dropped") {
  // A Hangul tone mark (class 224) and the Kawi killer (class 9), which are no marks of category
  // Mn.
  std::string const expected = "a\U00011f41\u302e";
  CHECK(words_of("a\u302e\U00011f41") == Words{expected});
  CHECK(words_of("a\u302e\u0001\U00011f41") == Words{expected});
}

TEST_CASE("each byte of a word comes from the character that became it") {
  std::vector<TextSpan> from;
  std::string text;
  BertWords const cut;
  cut("  x\u00c9\u200dy\u0301", [&](frugal::BertWord const& word) {
    text = word.text;
    from.assign(word.from.begin(), word.from.end());
  });
  CHECK(text == "xey");
  CHECK((from == std::vector<TextSpan>{{2, 3}, {3, 5}, {8, 9}}));
}

TEST_CASE("settings tell cased from uncased, and name the Unicode version") {
  CHECK(BertText{}.settings() != BertText{.lower_case = false}.settings());
  CHECK(BertText{}.settings() == BertText{.strip_accents = true}.settings());
  CHECK(BertText{}.settings().find("unicode 1") != std::string::npos);
}

using frugal::detail::bert_chinese;
using frugal::detail::bert_drops;
using frugal::detail::bert_kind;
using frugal::detail::BertKind;

// tests/interop/wordpiece.py compares every character with Python's tokenizers.
TEST_CASE("white space, punctuation and letters are told apart") {
  for (char32_t const c : {U' ', U'\t', U'\n', U'\v', U'\u0085', U'\u00a0', U'\u2029', U'\u3000'}) {
    CHECK((bert_kind(c) == BertKind::space));
  }
  for (char32_t const c : {U'!', U'$', U'+', U'@', U'`', U'~', U'\u00bf', U'\u2014', U'\u3002'}) {
    CHECK((bert_kind(c) == BertKind::punctuation));
  }
  for (char32_t const c : {U'a', U'0', U'\u00e9', U'\u20ac', U'\u4f60', U'\U0001f600', U'\x7f'}) {
    CHECK((bert_kind(c) == BertKind::letter));
  }
}

TEST_CASE("control, format and private characters are dropped, but no line end") {
  for (char32_t const c :
       {U'\0', U'\x1b', U'\x7f', U'\u0085', U'\u200d', U'\ufeff', U'\ufffd', U'\ue000'}) {
    CHECK(bert_drops(c));
  }
  for (char32_t const c : {U'\t', U'\n', U'\r', U' ', U'\u00a0', U'a', U'\u0301'}) {
    CHECK_FALSE(bert_drops(c));
  }
}

TEST_CASE("Chinese characters are those of BERT's blocks, without kana and Hangul") {
  for (char32_t const c :
       {U'\u3400', U'\u4dbf', U'\u4e00', U'\u9fff', U'\uf900', U'\U00020000', U'\U0002fa1f'}) {
    CHECK(bert_chinese(c));
  }
  for (char32_t const c : {U'\u33ff', U'\u4dc0', U'\ua000', U'\u3042', U'\uac00', U'\U0002b820'}) {
    CHECK_FALSE(bert_chinese(c));
  }
}

}  // namespace frugal_test::data_text_bert_words
