// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/text/vocabulary.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::data_text_vocabulary {

using frugal::Vocabulary;
using frugal::detail::WordpieceTrie;
using Ids = std::optional<std::vector<std::int32_t>>;

frugal::Fault fault_of(std::string_view text) {
  try {
    static_cast<void>(Vocabulary::parse(text, "v.txt"));
  } catch (frugal::DataError const& error) {
    return error.fault();
  }
  return {.what = "nothing was thrown", .where = "", .why = "", .fix = ""};
}

TEST_CASE("a token's id is the number of its line, from 0") {
  Vocabulary const vocabulary = Vocabulary::parse("[PAD]\n[UNK]\n\xe4\xbd\xa0\n##s\n");
  CHECK(vocabulary.size() == 4);
  CHECK(vocabulary.find("\xe4\xbd\xa0") == 2);
  CHECK(vocabulary.id("##s") == 3);
  CHECK(vocabulary.token(1) == "[UNK]");
  CHECK_FALSE(vocabulary.find("s").has_value());
}

TEST_CASE("line ends may be CR LF, and the last may be missing") {
  CHECK(Vocabulary::parse("a\r\nb").identity() == Vocabulary::parse("a\nb\n").identity());
}

TEST_CASE("the identity changes with a token, and with their order") {
  CHECK(Vocabulary::parse("a\nb\n").identity() != Vocabulary::parse("b\na\n").identity());
  CHECK(Vocabulary::parse("a\nb\n").identity() != Vocabulary::parse("ab\n").identity());
}

TEST_CASE("a copy outlives the vocabulary that it was copied from") {
  auto const copied = [] {
    Vocabulary const short_lived = Vocabulary::parse("a\nb\n");
    return Vocabulary(short_lived);
  }();
  CHECK(copied.find("b") == 1);
  CHECK(copied.token(0) == "a");
}

TEST_CASE("hostile vocabularies are refused with line and byte") {
  CHECK(fault_of("").what == "the vocabulary is empty");
  CHECK(fault_of("\xef\xbb\xbf[PAD]\n").what == "the vocabulary begins with a byte order mark");
  CHECK(fault_of("a\n\nb\n").what == "a line of the vocabulary is empty");
  CHECK(fault_of("a\n\nb\n").where == "v.txt, line 2, byte 2");
  CHECK(fault_of("a\n\r\n").where == "v.txt, line 2, byte 2");
  CHECK(fault_of("\n").where == "v.txt, line 1, byte 0");
  CHECK(fault_of("a\nb\xff\n").what == "the vocabulary is not UTF-8");
  CHECK(fault_of("a\nb\xff\n").where == "v.txt, line 2, byte 3");
  CHECK(fault_of("a\nb\na\n").what == "a token stands twice in the vocabulary");
  CHECK(fault_of("a\nb\na\n").why == "line 1 has 'a' as well");
  CHECK(fault_of("a\nb\na\n").where == "v.txt, line 3, byte 4");
}

TEST_CASE("a file is read, and its path is in its errors") {
  auto const path = std::filesystem::temp_directory_path() / "frugal_vocabulary_test.txt";
  std::ofstream(path, std::ios::binary) << "a\nb\n";
  CHECK(Vocabulary::read(path).id("b") == 1);
  std::ofstream(path, std::ios::binary) << "a\n\n";
  CHECK_THROWS_WITH_AS(static_cast<void>(Vocabulary::read(path)), doctest::Contains(path.c_str()),
                       frugal::DataError);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(static_cast<void>(Vocabulary::read(path)), frugal::StoreError);
}

TEST_CASE("an id or a token that is not there is refused by name") {
  Vocabulary const vocabulary = Vocabulary::parse("a\nb\n");
  CHECK_THROWS_WITH_AS(static_cast<void>(vocabulary.token(2)),
                       "frugal: no token has the id 2 (a vocabulary of 2 tokens). Give ids from 0 "
                       "to 1.",
                       frugal::DataError);
  CHECK_THROWS_AS(static_cast<void>(vocabulary.token(-1)), frugal::DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(vocabulary.id("[MASK]")),
                       doctest::Contains("the vocabulary has no token '[MASK]'"),
                       frugal::DataError);
}

Ids pieces(std::vector<std::int32_t> ids) { return ids; }

Ids matched(WordpieceTrie const& trie, std::string_view word) {
  std::vector<std::int32_t> ids;
  std::size_t bytes = 0;
  bool const known = trie.match(word, [&](std::int32_t id, std::uint32_t length) {
    ids.push_back(id);
    bytes += length;
  });
  if (!known) return std::nullopt;
  CHECK(bytes == word.size());
  return ids;
}

/// The longest piece first, by looking at all of them: what the definition says.
Ids by_definition(Vocabulary const& vocabulary, std::string_view word) {
  std::vector<std::int32_t> ids;
  for (std::size_t at = 0; at < word.size();) {
    std::size_t end = word.size();
    std::optional<std::int32_t> found;
    for (; end > at && !found; end -= found ? 0 : 1) {
      found = vocabulary.find((at == 0 ? "" : "##") + std::string(word.substr(at, end - at)));
    }
    if (!found) return std::nullopt;
    ids.push_back(*found);
    at = end;
  }
  return ids;
}

TEST_CASE("the example of the paper is matched as it is there") {
  // Figure 1: the vocabulary, and the word abcdz, which is a ##b ##c ##d ##z.
  Vocabulary const vocabulary = Vocabulary::parse("a\nabcdx\n##b\n##c\n##cdy\n##dz\n");
  WordpieceTrie const trie(vocabulary, "##", 100);
  CHECK(matched(trie, "abcdz") == pieces({0, 2, 3, 5}));
  CHECK(matched(trie, "abcdx") == pieces({1}));
  CHECK(matched(trie, "abcd") == std::nullopt);
  CHECK(matched(trie, "bcd") == std::nullopt);
}

TEST_CASE("random words of random vocabularies are cut as the definition says") {
  std::mt19937_64 chance(3);
  auto const drawn = [&](std::size_t most) {
    std::string text;
    for (std::size_t i = 0, end = 1 + chance() % most; i < end; ++i) {
      text.push_back(static_cast<char>('a' + chance() % 3));
    }
    return text;
  };
  std::size_t known = 0, unknown = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> tokens;
    for (std::size_t i = 0, end = 1 + chance() % 20; i < end; ++i) {
      tokens.push_back((chance() % 3 == 0 ? "" : "##") + drawn(5));
    }
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    std::string text;
    for (std::string const& token : tokens) text += token + '\n';
    Vocabulary const vocabulary = Vocabulary::parse(text);
    WordpieceTrie const trie(vocabulary, "##", 100);
    for (int i = 0; i < 100; ++i) {
      std::string const word = drawn(12);
      Ids const expected = by_definition(vocabulary, word);
      CHECK(matched(trie, word) == expected);
      ++(expected ? known : unknown);
    }
  }
  CHECK(known > 1000);  // both kinds were there
  CHECK(unknown > 1000);
}

TEST_CASE("pieces end between code points, although the trie is one of bytes") {
  // The two characters share their first two bytes.
  Vocabulary const vocabulary = Vocabulary::parse("\xe4\xbd\xa0\n##\xe4\xbd\xa1\n");
  WordpieceTrie const trie(vocabulary, "##", 100);
  CHECK(matched(trie, "\xe4\xbd\xa0\xe4\xbd\xa1") == pieces({0, 1}));
  CHECK(matched(trie, "\xe4\xbd\xa0\xe4\xbd\xa0") == std::nullopt);
}

TEST_CASE("a prefix alone is no piece, and pieces longer than any word are left out") {
  Vocabulary const vocabulary = Vocabulary::parse("##\nab\nabc\n");
  WordpieceTrie const trie(vocabulary, "##", 2);
  CHECK(matched(trie, "ab") == pieces({1}));
  CHECK(matched(trie, "abc") == std::nullopt);
}

TEST_CASE("without a prefix all pieces may stand anywhere") {
  WordpieceTrie const trie(Vocabulary::parse("ab\nc\n"), "", 100);
  CHECK(matched(trie, "cabab") == pieces({1, 0, 0}));
}

}  // namespace frugal_test::data_text_vocabulary
