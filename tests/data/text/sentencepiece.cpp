// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: text
#include <doctest/doctest.h>

#include <frugal/data/text/sentencepiece.hpp>
#include <frugal/data/text/tokenise.hpp>
#include <frugal/data/text/train_sentencepiece.hpp>

#include "data/text/sentences.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::data_text_sentencepiece {

using frugal::Encoded;
using frugal::SentencePiece;
using frugal::TextSpan;

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

}  // namespace frugal_test::data_text_sentencepiece
