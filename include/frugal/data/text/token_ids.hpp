// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstdint>
#include <ranges>
#include <string>
#include <type_traits>

#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>

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
