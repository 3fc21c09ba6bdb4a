// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: text
#include <doctest/doctest.h>

#include <frugal/data/text/train_sentencepiece.hpp>

#include "data/text/sentences.hpp"
#include "support/locales.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace frugal_test::data_text_train_sentencepiece {

using frugal::Pieces;
using frugal::SentencePieceTraining;
using frugal::train_sentencepiece;

TEST_CASE("both kinds of vocabulary have the size that is asked for, and are the same every time") {
  for (Pieces const pieces : {Pieces::Unigram, Pieces::BytePair}) {
    for (std::int32_t const size : {80, 200}) {
      SentencePieceTraining const training{.pieces = pieces, .size = size};
      auto const model = train_sentencepiece(sentences(), training);
      CHECK(model.size() == size);
      CHECK(model.bytes() == train_sentencepiece(sentences(), training).bytes());
      CHECK(model.decode(model.ids("The mouse slept")) == "The mouse slept");
    }
  }
}

TEST_CASE("a result in several threads is the same every time, too") {
  SentencePieceTraining const training{.size = 120, .threads = 3};
  CHECK(train_sentencepiece(sentences(), training).bytes() ==
        train_sentencepiece(sentences(), training).bytes());
}

TEST_CASE("byte fallback leaves no character unknown, and coverage leaves rare ones out") {
  auto some = sentences();
  some.push_back("\u03bb");
  auto const covered = train_sentencepiece(some, {.size = 120, .coverage = 1.0});
  CHECK(covered.decode(covered.ids("\u03bb")) == "\u03bb");
  auto const rare = train_sentencepiece(some, {.size = 120, .coverage = 0.99});
  CHECK(rare.ids("\u03bb").back() == rare.unknown());
  auto const bytes =
      train_sentencepiece(some, {.size = 400, .coverage = 0.99, .byte_fallback = true});
  CHECK(bytes.decode(bytes.ids("\u03bb\u4f60")) == "\u03bb\u4f60");
}

TEST_CASE("special tokens have the ids that are asked for, and symbols are never cut") {
  auto const model = train_sentencepiece(sentences(), {.size = 120,
                                                       .symbols = {"<sep>", "a,b", "\""},
                                                       .unknown = 1,
                                                       .start = -1,
                                                       .end = 3,
                                                       .padding = 0});
  CHECK(model.unknown() == 1);
  CHECK(model.end() == 3);
  CHECK(model.padding() == 0);
  CHECK_FALSE(model.start().has_value());
  for (std::string const symbol : {"<sep>", "a,b", "\""}) {
    auto const ids = model.ids("The" + symbol + "cat");
    bool found = false;
    for (std::int32_t const id : ids) found = found || model.piece(id) == symbol;
    CHECK_MESSAGE(found, symbol);
  }
}

TEST_CASE("digits are cut, and capitals kept or not, as asked for") {
  auto const digits = train_sentencepiece(sentences(), {.size = 120, .split_digits = true});
  for (std::int32_t id = 0; id < digits.size(); ++id) {
    CHECK(digits.piece(id).find("19") == std::string::npos);
  }
  auto const folded = train_sentencepiece(
      sentences(), {.size = 120, .coverage = 1.0, .normalisation = "nmt_nfkc_cf"});
  CHECK(folded.decode(folded.ids("THE CAT")) == "the cat");
}

TEST_CASE("a text longer than the library's limit is used") {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "\u03b1\u03b2 ";
  auto const model = train_sentencepiece(std::vector<std::string>{text}, {.size = 8});
  CHECK(model.decode(model.ids("\u03b1\u03b2")) == "\u03b1\u03b2");
}

TEST_CASE("what cannot be trained is refused with the library's words") {
  CHECK_THROWS_WITH_AS(static_cast<void>(train_sentencepiece(sentences(), {.size = 500000})),
                       doctest::Contains("Vocabulary size too high (500000)"),
                       frugal::SettingsError);
  CHECK_THROWS_AS(static_cast<void>(train_sentencepiece(sentences(), {.size = 5})),
                  frugal::SettingsError);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(train_sentencepiece(sentences(), {.size = 120, .normalisation = "no"})),
      doctest::Contains("No precompiled charsmap is found: no"), frugal::SettingsError);
  CHECK_THROWS_AS(static_cast<void>(train_sentencepiece(sentences(), {.size = 120, .unknown = -1})),
                  frugal::SettingsError);
  CHECK_THROWS_AS(static_cast<void>(train_sentencepiece(std::vector<std::string>{})),
                  frugal::EmptySourceError);
  CHECK_THROWS_AS(static_cast<void>(train_sentencepiece(std::vector<std::string>{"", ""})),
                  frugal::EmptySourceError);
}

TEST_CASE("the program's locale changes no vocabulary: the coverage has no decimal point") {
  auto some = sentences();
  some.push_back("\u03bb");
  SentencePieceTraining const training{.size = 120, .coverage = 0.99};
  std::string const expected = train_sentencepiece(some, training).bytes();
  CHECK(train_sentencepiece(some, {.size = 120, .coverage = 1.0}).bytes() != expected);
  {
    support::GroupedLocale const grouped;
    CHECK(train_sentencepiece(some, training).bytes() == expected);
  }
  support::CommaLocale const comma;
  REQUIRE(comma.works());
  CHECK(train_sentencepiece(some, training).bytes() == expected);
}

}  // namespace frugal_test::data_text_train_sentencepiece
