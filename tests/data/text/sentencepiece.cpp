// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: text
#include <frugal/data/text/sentencepiece.hpp>

#include "data/text/sentences.hpp"
#include "support/locales.hpp"

#include <doctest/doctest.h>

#include <frugal/data/text/tokenise.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::data_text_sentencepiece {

using frugal::Encoded;
using frugal::Pieces;
using frugal::SentencePiece;
using frugal::SentencePieceTraining;
using frugal::TextSpan;
using frugal::train_sentencepiece;

static_assert(frugal::Tokenizer<SentencePiece>);

SentencePiece const& small() {
  static SentencePiece const model =
      frugal::train_sentencepiece(sentences(), {.size = 100, .coverage = 1.0});
  return model;
}

SentencePiece with(frugal::SentencePieceSettings settings) {
  return SentencePiece::parse(small().bytes(), settings);
}

TEST_CASE("a text is cut into pieces that join to the text again") {
  std::string const text = "the dog and the cat";
  std::vector<std::int32_t> const ids = small().ids(text);
  CHECK(ids.size() > 4);
  CHECK(small().decode(ids) == text);
  std::string joined;
  for (std::int32_t const id : ids) joined += small().piece(id);
  CHECK(joined ==
        "\u2581the\u2581dog\u2581and\u2581the\u2581cat");  // spaces are part of the pieces
}

TEST_CASE("spans are the bytes of a text, without a gap") {
  std::string const text = "the d\u00f6g";
  Encoded const encoded = small().encode(text);
  CHECK(encoded.ids == small().ids(text));
  std::size_t at = 0;
  for (TextSpan const span : encoded.spans) {
    CHECK(span.begin == at);
    at = span.end;
  }
  CHECK(at == text.size());
}

TEST_CASE("special tokens are put around a text, and stay when it is cut") {
  Encoded const plain = small().encode("the cat");
  Encoded const both = with({.start = true, .end = true}).encode("the cat");
  REQUIRE(both.size() == plain.size() + 2);
  CHECK(both.ids.front() == 1);
  CHECK(both.ids.back() == 2);
  CHECK(std::vector<std::int32_t>(both.ids.begin() + 1, both.ids.end() - 1) == plain.ids);
  Encoded const cut = with({.start = true, .end = true}).encode("the cat", 3);
  CHECK(cut.ids == std::vector<std::int32_t>{1, plain.ids[0], 2});
  CHECK(small().encode("the cat", 1).ids == std::vector<std::int32_t>{plain.ids[0]});
  CHECK_THROWS_AS(static_cast<void>(with({.start = true, .end = true}).encode("a", 1)),
                  frugal::SettingsError);
}

TEST_CASE("special tokens have the ids of the training, and padding none by default") {
  CHECK(small().unknown() == 0);
  CHECK(small().start() == 1);
  CHECK(small().end() == 2);
  CHECK_FALSE(small().padding().has_value());
}

TEST_CASE("a model that was trained without a token refuses to put it there") {
  auto const model = frugal::train_sentencepiece(sentences(), {.size = 90, .start = -1});
  CHECK_THROWS_WITH_AS(static_cast<void>(SentencePiece::parse(model.bytes(), {.start = true})),
                       doctest::Contains("the model has no token <s>"), frugal::SettingsError);
}

TEST_CASE("an id that the model does not have is refused") {
  CHECK_THROWS_AS(static_cast<void>(small().piece(small().size())), frugal::DataError);
  CHECK_THROWS_AS(static_cast<void>(small().decode(std::vector<std::int32_t>{-1})),
                  frugal::DataError);
}

TEST_CASE("a file is written whole and read again, and one that is no model is refused by name") {
  auto const path = std::filesystem::temp_directory_path() / "frugal_sentencepiece_test.model";
  small().write(path);
  small().write(path);  // replaces it
  CHECK(SentencePiece::read(path).identity() == small().identity());
  std::filesystem::remove(path);
  CHECK_THROWS_AS(static_cast<void>(SentencePiece::read(path)), frugal::StoreError);
  for (std::string const bytes : {"", "no model", "[PAD]\n[UNK]\n"}) {
    CHECK_THROWS_WITH_AS(static_cast<void>(SentencePiece::parse(bytes, {}, "x.model")),
                         doctest::Contains("the file is no SentencePiece model (x.model)"),
                         frugal::DataError);
  }
}

TEST_CASE("a model that is cut off is refused, or works") {
  std::string const& whole = small().bytes();
  std::size_t refused = 0;
  for (std::size_t part = 0; part < 7; ++part) {
    try {
      auto const model =
          SentencePiece::parse(std::string_view(whole).substr(0, part * whole.size() / 7));
      static_cast<void>(model.ids("the cat"));
    } catch (frugal::DataError const&) {
      ++refused;
    }
  }
  CHECK(refused > 3);
}

TEST_CASE("the identity changes with the model and with a setting") {
  CHECK(with({}).identity() == small().identity());
  CHECK(with({.end = true}).identity() != small().identity());
  auto const other = frugal::train_sentencepiece(sentences(), {.size = 90});
  CHECK(other.identity() != small().identity());
}

TEST_CASE("several threads tokenise as one does") {
  std::vector<std::string> texts;
  for (int i = 0; i < 2000; ++i) texts.push_back(i % 2 == 0 ? "the cat sat on a log" : "that dog");
  CHECK(frugal::tokenise(texts, small(), 4) == frugal::tokenise(texts, small(), 1));
}

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
      sentences(), {.size = 120, .coverage = 1.0, .normalization = "nmt_nfkc_cf"});
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
      static_cast<void>(train_sentencepiece(sentences(), {.size = 120, .normalization = "no"})),
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

}  // namespace frugal_test::data_text_sentencepiece
