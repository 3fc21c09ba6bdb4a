// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: text
#include <doctest/doctest.h>

#include <frugal/data/text/wordpiece.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::data_text_wordpiece {

using frugal::Encoded;
using frugal::TextSpan;
using frugal::Vocabulary;
using frugal::Wordpiece;
using Ids = std::vector<std::int32_t>;

// Ids:                              0      1      2      3      4       5   6      7       8   9
constexpr std::string_view tokens =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\nhe\n##llo\n";

Wordpiece tokenizer(frugal::WordpieceSettings settings = {}) {
  return Wordpiece(Vocabulary::parse(tokens), std::move(settings));
}

TEST_CASE("the longest pieces are taken from the left, and special tokens put around them") {
  Encoded const encoded = tokenizer().encode("UNaffable h\u00e9llo");
  CHECK(encoded.ids == Ids{2, 5, 6, 7, 8, 9, 3});
  CHECK(encoded.types == Ids(7, 0));
  CHECK((encoded.spans ==
         std::vector<TextSpan>{{0, 0}, {0, 2}, {2, 5}, {5, 9}, {10, 13}, {13, 16}, {0, 0}}));
  CHECK(tokenizer().ids("UNaffable") == Ids{5, 6, 7});
}

TEST_CASE("a word that is not made of pieces is one unknown token, and so is a very long one") {
  CHECK(tokenizer().ids("unx un") == Ids{1, 5});
  Encoded const encoded = tokenizer().encode("a unaffx");
  CHECK((encoded.spans == std::vector<TextSpan>{{0, 0}, {0, 1}, {2, 8}, {0, 0}}));
  frugal::WordpieceSettings short_words;
  short_words.longest_word = 8;
  CHECK(tokenizer(short_words).ids("unaffable") == Ids{1});
  CHECK(tokenizer(short_words).ids("unable") == Ids{5, 7});
}

TEST_CASE("a pair has types, and the longer text is cut first") {
  Encoded const encoded = tokenizer().encode("unaffable", "hello hello", 8);
  CHECK(encoded.ids == Ids{2, 5, 6, 3, 8, 9, 8, 3});
  CHECK(encoded.types == Ids{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(tokenizer().encode("un", "he").ids == Ids{2, 5, 3, 8, 3});
  CHECK(tokenizer().encode("unaffable", 3).ids == Ids{2, 5, 3});
  CHECK(tokenizer().encode("", 2).ids == Ids{2, 3});
}

TEST_CASE("a limit below the special tokens is refused") {
  CHECK_THROWS_WITH_AS(static_cast<void>(tokenizer().encode("un", "he", 2)),
                       "frugal: at most 2 tokens (Wordpiece::encode): the special tokens alone are "
                       "3. Give a higher limit.",
                       frugal::SettingsError);
  CHECK_THROWS_AS(static_cast<void>(tokenizer().encode("un", 1)), frugal::SettingsError);
}

TEST_CASE("special tokens in a text are text, unless asked for") {
  CHECK(tokenizer().ids("un[SEP]he") == Ids{5, 1, 1, 1, 8});
  frugal::WordpieceSettings in_text;
  in_text.special_in_text = true;
  CHECK(tokenizer(in_text).ids("un[SEP]he [MASK]") == Ids{5, 3, 8, 4});
  CHECK((tokenizer(in_text).encode("un [SEP]h\u00e9").spans ==
         std::vector<TextSpan>{{0, 0}, {0, 2}, {3, 8}, {8, 11}, {0, 0}}));
}

TEST_CASE("ids are decoded to words, without special tokens") {
  CHECK(tokenizer().decode(tokenizer().encode("UNaffable h\u00e9llo").ids) == "unaffable hello");
  CHECK_THROWS_AS(static_cast<void>(tokenizer().decode(Ids{10})), frugal::DataError);
}

TEST_CASE("a vocabulary without a special token is refused by the token's name") {
  CHECK_THROWS_WITH_AS(static_cast<void>(Wordpiece(Vocabulary::parse("[PAD]\n[UNK]\n"))),
                       doctest::Contains("the vocabulary has no token '[CLS]'"), frugal::DataError);
}

TEST_CASE("the identity changes with the vocabulary and with every setting") {
  std::string const plain = tokenizer().identity();
  CHECK(plain == tokenizer().identity());
  CHECK(plain != Wordpiece(Vocabulary::parse(std::string(tokens) + "x\n")).identity());
  auto const changed = [](auto&& change) {
    frugal::WordpieceSettings settings;
    change(settings);
    return tokenizer(settings).identity();
  };
  CHECK(plain != changed([](auto& s) { s.text.lower_case = false; }));
  CHECK(plain != changed([](auto& s) { s.text.clean = false; }));
  CHECK(plain != changed([](auto& s) { s.longest_word = 9; }));
  CHECK(plain != changed([](auto& s) { s.special_in_text = true; }));
  CHECK(plain != changed([](auto& s) { s.mask = "[PAD]"; }));
  CHECK(plain != changed([](auto& s) { s.prefix = "#"; }));
}

}  // namespace frugal_test::data_text_wordpiece
