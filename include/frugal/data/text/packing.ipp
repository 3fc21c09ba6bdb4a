// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/text/packing.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::size_t Rooms::take(std::uint32_t length) {
  std::size_t node = 1;
  while (node < leaves_) node = 2 * node + (rooms_[2 * node] >= length ? 0 : 1);
  rooms_[node] -= length;
  for (std::size_t up = node / 2; up > 0; up /= 2) {
    rooms_[up] = std::max(rooms_[2 * up], rooms_[2 * up + 1]);
  }
  return node - leaves_;
}

FRUGAL_INLINE void first_fit(std::vector<Fitted> const& pieces, std::uint32_t room,
                             std::vector<std::uint64_t>& entries,
                             std::vector<std::uint64_t>& starts) {
  Rooms rooms(pieces.size(), room);
  std::vector<std::uint64_t> sequence;
  sequence.reserve(pieces.size());
  std::uint64_t sequences = 0;
  for (Fitted const& piece : pieces) {
    sequence.push_back(rooms.take(piece.length));
    sequences = std::max(sequences, sequence.back() + 1);
  }
  starts.assign(sequences + 1, 0);
  for (std::uint64_t const s : sequence) ++starts[s + 1];
  for (std::size_t s = 1; s <= sequences; ++s) starts[s] += starts[s - 1];
  std::vector<std::uint64_t> next(starts.begin(), starts.end() - 1);
  entries.resize(pieces.size());
  for (std::size_t p = 0; p < pieces.size(); ++p) entries[next[sequence[p]]++] = pieces[p].what;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::string Packing::text() const {
  return "length " + std::to_string(length) + ", pack " + std::to_string(static_cast<int>(pack)) +
         ", longer " + std::to_string(static_cast<int>(longer)) + ", end " +
         (end_of_document ? std::to_string(*end_of_document) : "none") + ", padding " +
         std::to_string(padding) + ", drop_last " + std::to_string(drop_last ? 1 : 0);
}

FRUGAL_INLINE double PackIndex::padding_share() const {
  auto const all = static_cast<double>(size()) * static_cast<double>(packing_.length);
  return size() == 0 ? 0.0 : static_cast<double>(padding()) / all;
}

FRUGAL_INLINE std::uint64_t PackIndex::whole(std::uint64_t length) {
  if (length == 0) ++empty_;
  return length == 0 ? 0 : length + (packing_.end_of_document ? 1 : 0);
}

FRUGAL_INLINE void PackIndex::refuse(std::uint64_t document, std::uint64_t length) const {
  throw DataError({.what = "a document is longer than a sequence",
                   .where = "document " + std::to_string(document),
                   .why = "it has " + std::to_string(length) + " tokens" +
                          (packing_.end_of_document ? " with its end" : "") +
                          ", and a sequence has " + std::to_string(packing_.length),
                   .fix = "Set Packing::length higher, or Packing::longer to LongDocuments::Cut or "
                          "LongDocuments::LeaveOut."});
}

}  // namespace frugal
