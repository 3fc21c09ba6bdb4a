// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/each_tensor.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/error.hpp>

#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>

namespace frugal {

namespace detail {

/// A value that a copy or a move of its owner forgets: an iterator into the owner.
template <class T>
class Forgotten {
 public:
  Forgotten() = default;
  Forgotten(Forgotten const&) noexcept {}
  Forgotten(Forgotten&& other) noexcept { other.value.reset(); }
  Forgotten& operator=(Forgotten const&) noexcept { return value.reset(), *this; }
  Forgotten& operator=(Forgotten&& other) noexcept {
    value.reset();
    other.value.reset();
    return *this;
  }
  ~Forgotten() = default;

  std::optional<T> value;
};

}  // namespace detail

/// Any forward range of batches, in its own order in every epoch: a std::vector<Batch>, a view
/// that makes batches as it is read. Made by `as_source`.
///
/// Order   the range's own; nothing is shuffled, and the seed plays no part.
/// Cost    next() copies the batch's handles, not its tensors; seek() walks over the batches
///         before the cursor, O(batches).
/// Errors  EmptySourceError for a range without batches; StateError for a cursor that is not at
///         the beginning of a batch, since a batch of unknown type cannot be cut.
template <std::ranges::view V>
  requires std::ranges::forward_range<V>
class RangeSource {
 public:
  using batch_type = std::remove_cvref_t<std::ranges::range_reference_t<V>>;

  explicit RangeSource(V batches) : batches_(std::move(batches)) { seek({}); }

  void seek(Cursor const& cursor) {
    std::uint64_t before = 0;
    std::uint64_t skip = 0;
    auto at = std::ranges::begin(batches_);
    auto const end = std::ranges::end(batches_);
    if (at == end) {
      throw EmptySourceError({.what = "the range holds no batches",
                              .where = "range of batches",
                              .why = "",
                              .fix = "Give it at least one."});
    }
    for (; before < cursor.position && at != end; ++at, ++skip) before += size_of(*at);
    if (before != cursor.position) {
      throw StateError({.what = "no batch begins at the cursor",
                        .where = "sample " + std::to_string(cursor.position) + " of epoch " +
                                 std::to_string(cursor.epoch),
                        .why = "the batches before it end at sample " + std::to_string(before),
                        .fix = "Resume with the batches that the cursor was saved with."});
    }
    skip_ = skip;
    at_.value.reset();
  }

  std::optional<batch_type> next() {
    auto& at = at_.value;
    if (!at) {
      at = std::ranges::begin(batches_);
      std::ranges::advance(*at, static_cast<std::ranges::range_difference_t<V>>(skip_),
                           std::ranges::end(batches_));
    }
    if (*at == std::ranges::end(batches_)) return std::nullopt;
    std::optional<batch_type> batch(**at);
    ++*at;
    ++skip_;
    return batch;
  }

  /// Samples per epoch; adds up the batches, O(batches).
  std::uint64_t samples() const {
    std::uint64_t sum = 0;
    for (auto&& batch : batches_) sum += size_of(batch);
    return sum;
  }

  std::uint64_t batches() const {
    return static_cast<std::uint64_t>(std::ranges::distance(batches_));
  }

  /// Reads every byte of batches that lie in memory. Of batches that are made as they are read it
  /// has the number of samples alone.
  void identify(DataIdentity& to) const {
    to.add("samples", samples());
    if constexpr (std::is_lvalue_reference_v<std::ranges::range_reference_t<V>> &&
                  ShowsTensors<batch_type>) {
      detail::TensorHash hash;
      for (batch_type const& batch : batches_) {
        detail::show_tensors(batch, [&](at::Tensor const& part) { hash.add(part); });
      }
      to.add("data", std::to_string(batches()) + " batches, hash " + hex_of(hash.digest()));
    }
  }

 private:
  static std::uint64_t size_of(batch_type const& batch) {
    return static_cast<std::uint64_t>(batch_samples(batch));
  }

  mutable V batches_;       // many views can be walked only when they are not const
  std::uint64_t skip_ = 0;  // batches of this epoch that were given
  detail::Forgotten<std::ranges::iterator_t<V>> at_;
};

/// A range that can be iterated again. Elements that are not batches get a sentence.
template <class R>
concept BatchRange = std::ranges::forward_range<R> && std::ranges::viewable_range<R>;

/// Makes a Source of a trainer's argument: a source itself (an lvalue by reference, an rvalue
/// moved out), or a `RangeSource` over any range of batches (an lvalue range is referred to and
/// has to outlive the run; an rvalue range is kept).
template <class S>
  requires Source<std::remove_reference_t<S>>
S as_source(S&& source) {
  return std::forward<S>(source);
}

template <BatchRange R>
  requires(!Source<std::remove_reference_t<R>>)
auto as_source(R&& batches) {
  return RangeSource<std::views::all_t<R>>(std::views::all(std::forward<R>(batches)));
}

}  // namespace frugal
