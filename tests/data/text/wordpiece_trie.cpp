// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/text/wordpiece_trie.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::data_text_wordpiece_trie {

using frugal::Vocabulary;
using frugal::detail::WordpieceTrie;
using Ids = std::optional<std::vector<std::int32_t>>;

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

}  // namespace frugal_test::data_text_wordpiece_trie
