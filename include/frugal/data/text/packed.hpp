// SPDX-License-Identifier: Apache-2.0
// Shapes: B sequences, T positions of each.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/labels.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/data/pad.hpp>
#include <frugal/data/text/packing.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// The document of a position that is padding.
inline constexpr std::int64_t no_document = -1;

/// Sequences that several documents share; made by `StackPacked` from what `Packed` gives.
///
/// Lengths and counts stay on the host, so that reading them needs no device sync.
struct PackedBatch {
  at::Tensor data{};  ///< [B, T] int64: token ids
  at::Tensor
      target{};  ///< [B, T] int64: the next token of the same document; -100 if there is none
  at::Tensor documents{};  ///< [B, T] int64: 0, 1, ... along a sequence; -1 for padding
  at::Tensor
      positions{};       ///< [B, T] int64: from 0 in each document (or part of one); 0 for padding
  at::Tensor lengths{};  ///< [B] int64 on the host: positions that are not padding
  at::Tensor counts{};   ///< [B] int64 on the host: targets that are not -100

  /// Targets that are not -100: what a loss weighs.
  std::int64_t counted() const { return detail::host_sum(counts); }
  /// Positions that are not padding.
  std::int64_t tokens() const { return detail::host_sum(lengths); }

  /// The host's tensors are not among them: they do not move.
  void each_tensor(auto&& f) { f(data, target, documents, positions); }
};

/// Tokens are positions that are not padding; a part of it has that part of the host's tensors.
template <>
struct batch_traits<PackedBatch> {
  static std::int64_t tokens(PackedBatch const& batch) { return batch.tokens(); }
  static PackedBatch narrow(PackedBatch const& batch, std::int64_t begin, std::int64_t count) {
    return detail::narrow_with_counts(batch, begin, count);
  }
};

/// The collate function of packed sequences. Throws EmptySourceError for none of them.
struct StackPacked {
  PackedBatch operator()(std::vector<PackedBatch> const& sequences,
                         std::span<std::size_t const> = {}) const {
    if (sequences.empty()) {
      throw EmptySourceError({.what = "there are no sequences to stack",
                              .where = "StackPacked",
                              .why = "",
                              .fix = "Give at least one."});
    }
    auto const stacked = [&](at::Tensor PackedBatch::* member) {
      std::vector<at::Tensor> rows;
      rows.reserve(sequences.size());
      for (PackedBatch const& sequence : sequences) rows.push_back(sequence.*member);
      return at::stack(rows);
    };
    return {.data = stacked(&PackedBatch::data),
            .target = stacked(&PackedBatch::target),
            .documents = stacked(&PackedBatch::documents),
            .positions = stacked(&PackedBatch::positions),
            .lengths = stacked(&PackedBatch::lengths),
            .counts = stacked(&PackedBatch::counts)};
  }
};

/// The attention mask of packed sequences: [B, 1, T, T] bool from `documents` [B, T], true where
/// the position of a row may attend to that of a column: both in one document and, if `causal`, the
/// column's not after the row's. Block-diagonal; for scaled_dot_product_attention's `attn_mask`.
/// No row is without a true element: padding attends to padding.
at::Tensor document_mask(at::Tensor const& documents, bool causal = true);

}  // namespace frugal

// What is a document of token ids: a span or a vector of integers, or a tensor of them.
namespace frugal::detail {

template <class D>
concept TokenRange = std::ranges::contiguous_range<D const> && std::ranges::sized_range<D const> &&
                     std::integral<std::ranges::range_value_t<D const>> &&
                     sizeof(std::ranges::range_value_t<D const>) >= 2;

template <class D>
concept TokenIds = TokenRange<D> || IsTensor<D>;

/// A set of documents, read by index.
template <class Set>
concept TokenSet =
    SampleSet<Set> && ReadsByIndex<Set> && TokenIds<std::remove_cvref_t<sample_of<Set>>>;

/// Tokens of a document. Throws ShapeError for a tensor of another shape than [length].
template <TokenIds D>
std::uint64_t token_count(D const& document) {
  if constexpr (TokenRange<D>) {
    return static_cast<std::uint64_t>(std::ranges::size(document));
  } else {
    if (document.dim() != 1) {
      throw ShapeError({.what = "a document is no row of token ids",
                        .where = "Packed",
                        .why = "it is " + shape_text(document),
                        .fix = "Give tensors of shape [length]."});
    }
    return static_cast<std::uint64_t>(document.size(0));
  }
}

/// Reads a document's tokens one at a time, without an operator for each.
template <TokenIds D>
class TokenReader {
 public:
  explicit TokenReader(D const& document) : document_(document) {}
  std::int64_t operator()(std::uint64_t at) const {
    return static_cast<std::int64_t>(std::ranges::data(document_)[at]);
  }

 private:
  D const& document_;
};

template <TokenIds D>
  requires IsTensor<D>
class TokenReader<D> {
 public:
  /// Throws DtypeError for a tensor that does not hold integers.
  explicit TokenReader(D const& document) {
    if (!at::isIntegralType(document.scalar_type(), /*includeBool=*/false)) {
      throw DtypeError({.what = "a document does not hold token ids",
                        .where = "Packed",
                        .why = "it is " + shape_text(document),
                        .fix = "Give integers, as in document.to(torch::kLong)."});
    }
    longs_ = document.to(at::kCPU, at::kLong).contiguous();
    data_ = static_cast<std::int64_t const*>(longs_.const_data_ptr());
  }
  std::int64_t operator()(std::uint64_t at) const { return data_[at]; }

 private:
  at::Tensor longs_;
  std::int64_t const* data_ = nullptr;
};

}  // namespace frugal::detail

namespace frugal {

namespace detail {
template <class Docs>
concept MeasuredDocuments = requires(Docs const& documents, std::uint64_t index) {
  { documents.length(index) } -> std::convertible_to<std::uint64_t>;
};
}  // namespace detail

/// A SampleSet of sequences of one length, packed from the documents of another set: token ids,
/// their targets, and where each document begins. No target, and no attention under
/// `document_mask`, crosses from one document into another.
///
/// `Docs`  a SampleSet that is read by index, and gives the same documents every time: a span or a
///         vector of integers, or a tensor [length]. `Documents` is one. With a member
///         `length(index)` the index is built without reading the documents.
/// Cost    the index of PackIndex; a sequence reads the documents that it is made of.
/// Errors  those of PackIndex; EmptySourceError without a sequence; DataError where a document has
///         another length than when it was measured.
template <class Docs>
class Packed {
  static_assert(detail::TokenSet<Docs>,
                "frugal: Packed packs a set of documents that is read by index, `get(index)`, and "
                "gives a span, a vector or a tensor of token ids. Tokenise the texts first, as in "
                "`Packed(tokenise(texts, tokenizer), Packing{.length = 1024})`.");

 public:
  Packed(Docs documents, Packing const& packing)
      : documents_(std::move(documents)), index_(index_of(documents_, packing)) {
    if (index_.size() == 0) {
      throw EmptySourceError({.what = "the documents make no sequence",
                              .where = "Packed",
                              .why = std::to_string(documents_.size()) + " documents, " +
                                     std::to_string(index_.empty()) + " of them empty, " +
                                     std::to_string(index_.left_out()) + " left out, " +
                                     std::to_string(index_.dropped_tokens()) + " tokens dropped",
                              .fix = "Give more documents, shorter sequences, or no drop_last."});
    }
  }

  /// Sequences.
  std::uint64_t size() const { return index_.size(); }

  /// Sequence `index` as a batch of one without the batch's dimension: all tensors are [T].
  PackedBatch get(std::uint64_t index) const {
    std::int64_t const t = packing().length;
    PackedBatch made;
    for (at::Tensor* tensor : {&made.data, &made.target, &made.documents, &made.positions}) {
      *tensor = at::empty({t}, at::TensorOptions(at::kLong));
    }
    auto const out = [](at::Tensor& tensor) {
      return static_cast<std::int64_t*>(tensor.mutable_data_ptr());
    };
    Place place{out(made.data), out(made.target), out(made.documents), out(made.positions)};
    index_.pieces(index, [&](PackIndex::Piece const& piece) { put(piece, index, place); });
    made.lengths = at::scalar_tensor(place.filled, at::kLong);
    made.counts = at::scalar_tensor(place.counted, at::kLong);
    for (; place.filled < t; ++place.filled) {
      place.data[place.filled] = packing().padding;
      place.target[place.filled] = ignored_label;
      place.documents[place.filled] = no_document;
      place.positions[place.filled] = 0;
    }
    return made;
  }

  std::string name(std::uint64_t index) const {
    std::string text = "sequence " + std::to_string(index);
    index_.pieces(index, [&, first = true](PackIndex::Piece const& piece) mutable {
      if (first) text += ", which begins with " + sample_name(documents_, piece.document);
      first = false;
    });
    return text;
  }

  std::string identity() const
    requires IdentifiedSet<Docs>
  {
    return "packed, " + packing().text() + ", of " + std::string(documents_.identity());
  }

  void identify(DataIdentity& to) const {
    detail::identify(documents_, to);
    to.add("packing", packing().text());
  }

  /// The packing of each document, and the counts of tokens, targets and padding.
  PackIndex const& index() const { return index_; }
  Packing const& packing() const { return index_.packing(); }
  Docs const& documents() const { return documents_; }

 private:
  struct Place {
    std::int64_t *data, *target, *documents, *positions;
    std::int64_t filled = 0;
    std::int64_t counted = 0;
    std::int64_t document = 0;
  };

  static PackIndex index_of(Docs const& documents, Packing const& packing) {
    return PackIndex(
        documents.size(),
        [&](std::uint64_t index) -> std::uint64_t {
          if constexpr (detail::MeasuredDocuments<Docs>) {
            return documents.length(index);
          } else {
            return detail::token_count(documents.get(index));
          }
        },
        packing);
  }

  /// Writes a piece of a document after what is there.
  void put(PackIndex::Piece const& piece, std::uint64_t index, Place& place) const {
    auto const& document = documents_.get(piece.document);
    std::uint64_t const tokens = detail::token_count(document);
    std::uint64_t const all = tokens + (packing().end_of_document ? 1 : 0);
    std::int64_t const room = packing().length - place.filled;
    std::uint64_t const left = all < piece.begin ? 0 : all - piece.begin;
    std::uint64_t const count = std::min(piece.count, left);
    bool const fits = count > 0 && count <= static_cast<std::uint64_t>(room) &&
                      (packing().pack != Pack::Cut || count == piece.count);
    if (tokens == 0 || !fits) {
      throw DataError(
          {.what = "a document has another length than when it was measured",
           .where = sample_name(documents_, piece.document) + ", sequence " + std::to_string(index),
           .why = "it has " + std::to_string(tokens) + " tokens now",
           .fix = "Give a set whose documents do not change, or pack it again."});
    }
    detail::TokenReader const read(document);
    auto const token = [&](std::uint64_t at) -> std::int64_t {
      return at < tokens ? read(at) : static_cast<std::int64_t>(*packing().end_of_document);
    };
    for (std::uint64_t i = 0; i < count; ++i, ++place.filled) {
      std::uint64_t const at = piece.begin + i;
      place.data[place.filled] = token(at);
      place.target[place.filled] = at + 1 < all ? token(at + 1) : ignored_label;
      place.documents[place.filled] = place.document;
      place.positions[place.filled] = static_cast<std::int64_t>(i);
    }
    place.counted += static_cast<std::int64_t>(count) - (piece.begin + count == all ? 1 : 0);
    ++place.document;
  }

  Docs documents_;
  PackIndex index_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/text/packed.ipp>
#endif
