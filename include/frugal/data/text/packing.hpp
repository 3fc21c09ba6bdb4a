// SPDX-License-Identifier: Apache-2.0
// Shapes: T positions of a sequence.
#pragma once

#include <frugal/error.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace frugal::detail {

/// An item with a length, placed in a sequence.
struct Fitted {
  std::uint64_t what = 0;
  std::uint32_t length = 0;  ///< at least 1
};

/// The room that is left in each sequence, and in which the first with enough is found: a tree of
/// maxima, O(log sequences) a question. A sequence that is not begun has all of its room.
class Rooms {
 public:
  Rooms(std::size_t most, std::uint32_t room)
      : leaves_(std::bit_ceil(std::max<std::size_t>(most, 1))), rooms_(2 * leaves_, room) {}

  /// The first sequence with room for `length`, which takes it.
  std::size_t take(std::uint32_t length);

 private:
  std::size_t leaves_;
  std::vector<std::uint32_t> rooms_;
};

/// First fit: each piece, in order, into the first sequence with room for it. `entries` are the
/// pieces sequence by sequence, in that order; those of sequence i begin at starts[i]. No piece is
/// longer than `room`.
void first_fit(std::vector<Fitted> const& pieces, std::uint32_t room,
               std::vector<std::uint64_t>& entries, std::vector<std::uint64_t>& starts);

}  // namespace frugal::detail

namespace frugal {

/// How documents become sequences of one length.
enum class Pack {
  Cut,                 ///< one after the other, and cut every T tokens: no padding
  FirstFit,            ///< each document whole, in the first sequence with room for it
  FirstFitDecreasing,  ///< the same, the longest documents first: less padding
};

/// What happens to a document longer than a sequence where documents are not cut.
enum class LongDocuments {
  Refuse,   ///< a DataError that names it
  Cut,      ///< pieces of T tokens, each packed as a document is
  LeaveOut  ///< it is counted and not packed
};

/// The settings of a packing.
struct Packing {
  std::int64_t length = 1024;  ///< T, positions of a sequence
  Pack pack = Pack::Cut;
  LongDocuments longer = LongDocuments::Refuse;  ///< without effect on Pack::Cut
  /// The token after each document, such as `</s>` or `<|endoftext|>`; the document's last token
  /// is then trained to predict it.
  std::optional<std::int32_t> end_of_document{};
  std::int32_t padding = 0;  ///< the token of positions that no document has
  bool drop_last = false;    ///< Pack::Cut leaves out the last sequence unless it is full

  /// The settings as a text, for an identity.
  std::string text() const;
};

/// Which tokens of which documents stand in which sequence: an index of 8 bytes a document (a
/// piece, where long documents are cut) and, unless documents are cut, 8 a sequence. Empty
/// documents take no place. A function of the documents' lengths and of the settings.
///
/// Cost    sequence i is found in O(log documents); building it takes O(documents log documents).
/// Errors  SettingsError for a length below 1; DataError for a document that does not fit.
/// Source  First fit decreasing needs at most 11/9 of the fewest sequences, and 6/9 more (Dosa,
///         "The tight bound of first fit decreasing bin-packing algorithm", ESCAPE 2007). Ding et
///         al., "Fewer truncations improve language modeling" (ICML 2024), on packing without
///         cutting.
class PackIndex {
 public:
  /// Tokens [begin, begin + count) of a document, its end token included; `count` is at most what
  /// the document has, and unknown (the rest of the sequence) where documents are not cut.
  struct Piece {
    std::uint64_t document = 0;
    std::uint64_t begin = 0;
    std::uint64_t count = 0;

    friend bool operator==(Piece const&, Piece const&) = default;
  };

  /// `length(document)` gives a document's tokens, without the end token.
  template <std::invocable<std::uint64_t> Length>
  PackIndex(std::uint64_t documents, Length&& length, Packing const& packing) : packing_(packing) {
    if (packing.length < 1 || packing.length > most_positions) {
      throw SettingsError({.what = "sequences of " + std::to_string(packing.length) + " tokens",
                           .where = "Packing::length",
                           .why = "",
                           .fix = "Give 1 to " + std::to_string(most_positions) + "."});
    }
    if (packing.pack == Pack::Cut) {
      concatenate(documents, length);
    } else {
      fit(documents, length);
    }
  }

  /// Sequences.
  std::uint64_t size() const { return sequences_; }

  /// Calls `f(piece)` for the pieces of sequence `index`, in order.
  template <class F>
  void pieces(std::uint64_t index, F&& f) const {
    auto const t = static_cast<std::uint64_t>(packing_.length);
    if (packing_.pack != Pack::Cut) {
      for (std::uint64_t at = starts_[index]; at < starts_[index + 1]; ++at) {
        std::uint64_t const piece = entries_[at] & most_pieces;
        f(Piece{entries_[at] >> piece_bits, piece * t, t});
      }
      return;
    }
    std::uint64_t place = index * t;
    std::uint64_t const end = std::min(place + t, entries_.back());
    auto next = std::upper_bound(entries_.begin(), entries_.end(), place);
    for (; place < end; ++next) {
      std::uint64_t const begin = next == entries_.begin() ? 0 : *(next - 1);
      std::uint64_t const count = std::min(*next, end) - place;
      if (count == 0) continue;  // an empty document
      f(Piece{static_cast<std::uint64_t>(next - entries_.begin()), place - begin, count});
      place += count;
    }
  }

  /// Positions of all sequences that a document has.
  std::uint64_t tokens() const { return tokens_; }
  /// Positions with a target that counts: those followed by a token of the same document.
  std::uint64_t targets() const { return targets_; }
  /// Positions that no document has.
  std::uint64_t padding() const {
    return size() * static_cast<std::uint64_t>(packing_.length) - tokens_;
  }
  /// The padding as a share of all positions.
  double padding_share() const;
  /// Tokens that `drop_last` leaves out.
  std::uint64_t dropped_tokens() const { return dropped_; }
  /// Documents that LongDocuments::LeaveOut leaves out.
  std::uint64_t left_out() const { return left_out_; }
  /// Documents without a token.
  std::uint64_t empty() const { return empty_; }

  Packing const& packing() const { return packing_; }

 private:
  static constexpr std::int64_t most_positions = std::int64_t{1} << 30;
  static constexpr int piece_bits = 24;
  static constexpr std::uint64_t most_pieces = (std::uint64_t{1} << piece_bits) - 1;

  /// A document's length with its end token; an empty document has none.
  std::uint64_t whole(std::uint64_t length);

  template <class Length>
  void concatenate(std::uint64_t documents, Length& length) {
    auto const t = static_cast<std::uint64_t>(packing_.length);
    std::uint64_t total = 0;
    entries_.reserve(documents);
    for (std::uint64_t d = 0; d < documents; ++d) {
      total += whole(static_cast<std::uint64_t>(length(d)));
      entries_.push_back(total);
    }
    sequences_ = packing_.drop_last ? total / t : (total + t - 1) / t;
    tokens_ = std::min(total, sequences_ * t);
    dropped_ = total - tokens_;
    // Every token has a target but the last of each document.
    targets_ = tokens_;
    std::uint64_t before = 0;
    for (std::uint64_t const end : entries_) {
      if (end > tokens_) break;
      if (end > before) --targets_;
      before = end;
    }
  }

  template <class Length>
  void fit(std::uint64_t documents, Length& length) {
    auto const t = static_cast<std::uint64_t>(packing_.length);
    std::vector<detail::Fitted> pieces;
    pieces.reserve(documents);
    for (std::uint64_t d = 0; d < documents; ++d) {
      std::uint64_t const all = whole(static_cast<std::uint64_t>(length(d)));
      if (all > t && packing_.longer == LongDocuments::LeaveOut) {
        ++left_out_;
        continue;
      }
      if (all > t && packing_.longer == LongDocuments::Refuse) refuse(d, all);
      if ((all + t - 1) / t > most_pieces) refuse(d, all);
      for (std::uint64_t begin = 0; begin < all; begin += t) {
        auto const count = static_cast<std::uint32_t>(std::min(t, all - begin));
        pieces.push_back({d << piece_bits | begin / t, count});
      }
      tokens_ += all;
      targets_ += all == 0 ? 0 : all - 1;
    }
    if (packing_.pack == Pack::FirstFitDecreasing) {
      std::sort(pieces.begin(), pieces.end(), [](auto const& a, auto const& b) {
        return a.length != b.length ? a.length > b.length : a.what < b.what;
      });
    }
    detail::first_fit(pieces, static_cast<std::uint32_t>(t), entries_, starts_);
    sequences_ = starts_.size() - 1;
  }

  [[noreturn]] void refuse(std::uint64_t document, std::uint64_t length) const;

  Packing packing_;
  std::uint64_t sequences_ = 0;
  std::uint64_t tokens_ = 0;
  std::uint64_t targets_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t left_out_ = 0;
  std::uint64_t empty_ = 0;
  /// Cut: where each document ends. Otherwise: document and piece, sequence by sequence.
  std::vector<std::uint64_t> entries_;
  std::vector<std::uint64_t> starts_;  ///< where each sequence begins in `entries_`
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/text/packing.ipp>
#endif
