// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/text/packing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace frugal_test::data_text_packing {

using frugal::LongDocuments;
using frugal::Pack;
using frugal::PackIndex;
using frugal::Packing;
using Piece = PackIndex::Piece;
using Lengths = std::vector<std::uint64_t>;

PackIndex index_of(Lengths const& lengths, Packing const& packing) {
  return PackIndex(lengths.size(), [&](std::uint64_t d) { return lengths[d]; }, packing);
}

/// The pieces of a sequence, their counts capped by their documents, as a reader caps them.
std::vector<Piece> pieces_of(PackIndex const& index, std::uint64_t sequence,
                             Lengths const& lengths) {
  std::vector<Piece> pieces;
  index.pieces(sequence, [&](Piece piece) {
    std::uint64_t const all = lengths[piece.document] + (index.packing().end_of_document ? 1 : 0);
    piece.count = std::min(piece.count, all - piece.begin);
    pieces.push_back(piece);
  });
  return pieces;
}

/// Lengths as documents have them: many short ones, some long, some empty.
Lengths drawn(std::uint64_t seed, std::size_t count, std::uint64_t most) {
  std::mt19937_64 chance(seed);
  Lengths lengths;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t const kind = chance() % 10;
    lengths.push_back(kind == 0  ? 0
                      : kind < 8 ? 1 + chance() % (most / 4 + 1)
                                 : 1 + chance() % most);
  }
  return lengths;
}

/// What must hold of every packing, counted by hand from the pieces alone.
void check_whole(Lengths const& lengths, Packing const& packing) {
  INFO(packing.text());
  PackIndex const index = index_of(lengths, packing);
  auto const t = static_cast<std::uint64_t>(packing.length);
  std::map<std::uint64_t, std::uint64_t> reached;  // how much of each document has come
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::uint64_t tokens = 0, targets = 0;
  bool whole = true;  // one check of many: doctest's take longer than what they check
  for (std::uint64_t s = 0; s < index.size(); ++s) {
    std::uint64_t filled = 0;
    for (Piece const& piece : pieces_of(index, s, lengths)) {
      whole = whole && piece.count > 0;
      // Pieces of a long document that is packed whole may come in any order.
      whole = whole && (packing.pack != Pack::Cut || reached[piece.document] == piece.begin);
      whole = whole && seen.emplace(piece.document, piece.begin).second;
      reached[piece.document] += piece.count;
      std::uint64_t const all = lengths[piece.document] + (packing.end_of_document ? 1 : 0);
      targets += piece.count - (piece.begin + piece.count == all ? 1 : 0);
      filled += piece.count;
    }
    whole = whole && filled > 0 && filled <= t;
    tokens += filled;
  }
  std::uint64_t expected = 0, empty = 0, left_out = 0;
  for (std::uint64_t d = 0; d < lengths.size(); ++d) {
    std::uint64_t const all = lengths[d] == 0 ? 0 : lengths[d] + (packing.end_of_document ? 1 : 0);
    empty += lengths[d] == 0 ? 1 : 0;
    bool const out = packing.pack != Pack::Cut && all > t;
    if (out && packing.longer == LongDocuments::LeaveOut) {
      ++left_out;
      whole = whole && reached.count(d) == 0;
    } else {
      expected += all;
      whole = whole && (packing.drop_last || all == 0 || reached[d] == all);
    }
  }
  CHECK(whole);
  CHECK(index.tokens() == tokens);
  CHECK(index.targets() == targets);
  CHECK(index.tokens() + index.dropped_tokens() == expected);
  CHECK(index.dropped_tokens() < (packing.drop_last ? t : 1));
  CHECK(index.padding() == index.size() * t - tokens);
  CHECK(index.empty() == empty);
  CHECK(index.left_out() == left_out);
}

TEST_CASE("documents are concatenated with their ends, and cut every T tokens") {
  // Two documents with an end each: 0 0 0 E | 0 1 1 E, as 4 + 3 tokens and one padding.
  Lengths const lengths{4, 0, 2};
  PackIndex const index = index_of(lengths, {.length = 4, .end_of_document = 9});
  CHECK(index.size() == 2);
  CHECK(pieces_of(index, 0, lengths) == std::vector<Piece>{{0, 0, 4}});
  CHECK(pieces_of(index, 1, lengths) == std::vector<Piece>{{0, 4, 1}, {2, 0, 3}});
  CHECK(index.padding_share() == 0.0);
  CHECK(index.targets() == 6);
}

TEST_CASE("the last sequence is padded, or dropped") {
  Lengths const lengths{3, 3};
  CHECK(index_of(lengths, {.length = 4}).size() == 2);
  CHECK(index_of(lengths, {.length = 4}).padding() == 2);
  CHECK(index_of(lengths, {.length = 4}).padding_share() == 0.25);
  PackIndex const dropped = index_of(lengths, {.length = 4, .drop_last = true});
  CHECK(dropped.size() == 1);
  CHECK(dropped.dropped_tokens() == 2);
  CHECK(dropped.targets() == 3);  // the token that follows position 3 is of document 1
}

TEST_CASE("first fit puts each document whole into the first sequence with room") {
  Lengths const lengths{5, 4, 3, 2, 6};
  PackIndex const index = index_of(lengths, {.length = 8, .pack = Pack::FirstFit});
  CHECK(index.size() == 3);
  CHECK(pieces_of(index, 0, lengths) == std::vector<Piece>{{0, 0, 5}, {2, 0, 3}});
  CHECK(pieces_of(index, 1, lengths) == std::vector<Piece>{{1, 0, 4}, {3, 0, 2}});
  CHECK(pieces_of(index, 2, lengths) == std::vector<Piece>{{4, 0, 6}});
}

TEST_CASE("the longest first needs fewer sequences here") {
  Lengths const lengths{2, 2, 6, 6};
  CHECK(index_of(lengths, {.length = 8, .pack = Pack::FirstFit}).size() == 3);
  PackIndex const index = index_of(lengths, {.length = 8, .pack = Pack::FirstFitDecreasing});
  CHECK(index.size() == 2);
  CHECK(pieces_of(index, 0, lengths) == std::vector<Piece>{{2, 0, 6}, {0, 0, 2}});
}

TEST_CASE("documents of one length are packed in their order") {
  Lengths const lengths(100, 3);
  PackIndex const index = index_of(lengths, {.length = 3, .pack = Pack::FirstFitDecreasing});
  for (std::uint64_t s = 0; s < 100; ++s) {
    CHECK(pieces_of(index, s, lengths) == std::vector<Piece>{{s, 0, 3}});
  }
}

TEST_CASE("a document longer than a sequence is refused by name, cut, or left out") {
  Lengths const lengths{2, 9};
  CHECK_THROWS_WITH_AS(
      static_cast<void>(index_of(lengths, {.length = 4, .pack = Pack::FirstFit})),
      "frugal: a document is longer than a sequence (document 1): it has 9 tokens, and a sequence "
      "has 4. Set Packing::length higher, or Packing::longer to LongDocuments::Cut or "
      "LongDocuments::LeaveOut.",
      frugal::DataError);
  PackIndex const cut =
      index_of(lengths, {.length = 4, .pack = Pack::FirstFit, .longer = LongDocuments::Cut});
  CHECK(pieces_of(cut, 0, lengths) == std::vector<Piece>{{0, 0, 2}, {1, 8, 1}});
  CHECK(pieces_of(cut, 1, lengths) == std::vector<Piece>{{1, 0, 4}});
  CHECK(pieces_of(cut, 2, lengths) == std::vector<Piece>{{1, 4, 4}});
  CHECK(cut.targets() == 1 + 8);
  PackIndex const less =
      index_of(lengths, {.length = 4, .pack = Pack::FirstFit, .longer = LongDocuments::LeaveOut});
  CHECK(less.size() == 1);
  CHECK(less.left_out() == 1);
}

TEST_CASE("each token comes once, and the counts are exact, for any lengths and settings") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Lengths const lengths = drawn(seed, 1 + 25 * seed, 40);
    for (std::int64_t const t : {1, 7, 16, 64}) {
      for (Pack const pack : {Pack::Cut, Pack::FirstFit, Pack::FirstFitDecreasing}) {
        for (LongDocuments const longer : {LongDocuments::Cut, LongDocuments::LeaveOut}) {
          check_whole(lengths, {.length = t, .pack = pack, .longer = longer, .end_of_document = 1});
          check_whole(lengths, {.length = t, .pack = pack, .longer = longer});
        }
      }
      check_whole(lengths, {.length = t, .end_of_document = 1, .drop_last = true});
    }
  }
}

TEST_CASE("first fit is that of a loop over all sequences") {
  Lengths const lengths = drawn(5, 500, 32);
  Packing const packing{.length = 32, .pack = Pack::FirstFit};
  std::vector<std::vector<std::uint64_t>> expected;
  std::vector<std::uint64_t> room;
  for (std::uint64_t d = 0; d < lengths.size(); ++d) {
    if (lengths[d] == 0) continue;
    std::size_t s = 0;
    while (s < room.size() && room[s] < lengths[d]) ++s;
    if (s == room.size()) {
      room.push_back(32);
      expected.emplace_back();
    }
    room[s] -= lengths[d];
    expected[s].push_back(d);
  }
  PackIndex const index = index_of(lengths, packing);
  REQUIRE(index.size() == expected.size());
  for (std::uint64_t s = 0; s < index.size(); ++s) {
    std::vector<std::uint64_t> documents;
    for (Piece const& piece : pieces_of(index, s, lengths)) documents.push_back(piece.document);
    CHECK(documents == expected[s]);
  }
}

TEST_CASE("no documents make no sequence, and a length of 0 is refused") {
  for (Pack const pack : {Pack::Cut, Pack::FirstFit}) {
    CHECK(index_of({}, {.pack = pack}).size() == 0);
    CHECK(index_of({0, 0}, {.pack = pack, .end_of_document = 1}).size() == 0);
    CHECK(index_of({}, {.pack = pack}).padding_share() == 0.0);
    CHECK_THROWS_AS(static_cast<void>(index_of({1}, {.length = 0, .pack = pack})),
                    frugal::SettingsError);
  }
}

using frugal::detail::first_fit;
using frugal::detail::Fitted;

/// The same by a search through all sequences.
std::vector<std::vector<std::uint64_t>> by_search(std::vector<Fitted> const& pieces,
                                                  std::uint32_t room) {
  std::vector<std::vector<std::uint64_t>> out;
  std::vector<std::uint32_t> rooms;
  for (Fitted const& piece : pieces) {
    std::size_t at = 0;
    while (at < rooms.size() && rooms[at] < piece.length) ++at;
    if (at == rooms.size()) {
      rooms.push_back(room);
      out.emplace_back();
    }
    rooms[at] -= piece.length;
    out[at].push_back(piece.what);
  }
  return out;
}

TEST_CASE("each piece goes into the first sequence with room, as a search finds it") {
  std::mt19937 random(3);
  for (std::uint32_t const room : {1U, 2U, 7U, 100U}) {
    for (std::size_t const count : {0U, 1U, 2U, 3U, 64U, 65U, 500U}) {
      std::vector<Fitted> pieces;
      for (std::size_t i = 0; i < count; ++i) {
        pieces.push_back({.what = i, .length = 1 + static_cast<std::uint32_t>(random() % room)});
      }
      std::vector<std::uint64_t> entries, starts;
      first_fit(pieces, room, entries, starts);
      std::vector<std::vector<std::uint64_t>> found(starts.size() - 1);
      for (std::size_t s = 0; s + 1 < starts.size(); ++s) {
        for (std::uint64_t at = starts[s]; at < starts[s + 1]; ++at)
          found[s].push_back(entries[at]);
      }
      CHECK(found == by_search(pieces, room));
      CHECK(entries.size() == count);
    }
  }
}

}  // namespace frugal_test::data_text_packing
