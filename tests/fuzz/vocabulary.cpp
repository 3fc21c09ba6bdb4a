// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are either refused as a vocabulary with a DataError, or give tokens that are
// found by their ids and by their text; and the trie of that vocabulary cuts words, made of its own
// tokens and of the input, as the definition of WordPiece says. Everything else ends the program.
#include <frugal/base/utf8.hpp>
#include <frugal/data/text/vocabulary.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demand.hpp"

namespace {

using frugal::Vocabulary;
using frugal::detail::WordpieceTrie;
using Ids = std::optional<std::vector<std::int32_t>>;

constexpr std::size_t longest = 100;

using frugal_fuzz::demand;

Ids matched(WordpieceTrie const& trie, std::string_view word) {
  std::vector<std::int32_t> ids;
  std::size_t bytes = 0;
  bool const known = trie.match(word, [&](std::int32_t id, std::uint32_t length) {
    ids.push_back(id);
    bytes += length;
  });
  demand(!known || bytes == word.size(), "pieces are as long as their word");
  return known ? Ids(ids) : std::nullopt;
}

/// The longest piece first, by looking at all of them.
Ids by_definition(Vocabulary const& vocabulary, std::string_view word) {
  std::vector<std::int32_t> ids;
  for (std::size_t at = 0; at < word.size();) {
    std::optional<std::int32_t> found;
    std::size_t end = word.size() + 1;
    while (!found && --end > at) {
      std::string_view const part = word.substr(at, end - at);
      if (frugal::detail::count_code_points(part) > longest) continue;
      std::string const piece(part);
      found = vocabulary.find(at == 0 && !piece.starts_with("##") ? piece : "##" + piece);
      if (at == 0 && found && vocabulary.token(*found).starts_with("##")) found.reset();
    }
    if (!found) return std::nullopt;
    ids.push_back(*found);
    at = end;
  }
  return ids;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  try {
    Vocabulary const vocabulary = Vocabulary::parse(text, "fuzz");
    std::string again, words;
    for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
      std::string_view const token = vocabulary.token(id);
      demand(vocabulary.id(token) == id, "a token is found by its text");
      again += std::string(token) + "\r\n";  // a token may end with CR
      if (words.size() < 60) words += token.substr(token.starts_with("##") ? 2 : 0);
    }
    demand(Vocabulary::parse(again).identity() == vocabulary.identity(), "a copy is the same");
    WordpieceTrie const trie(vocabulary, "##", longest);
    for (std::size_t first = 0; first < std::min<std::size_t>(words.size(), 8); ++first) {
      std::string_view const word = std::string_view(words).substr(first);
      if (frugal::detail::first_invalid_utf8(word) != word.size()) continue;  // within a code point
      demand(matched(trie, word) == by_definition(vocabulary, word), "words are cut by definition");
    }
  } catch (frugal::DataError const& error) {
    demand(!error.fault().what.empty() && error.fault().where.starts_with("fuzz, line "),
           "a vocabulary is refused with what and where");
  }
  return 0;
}
