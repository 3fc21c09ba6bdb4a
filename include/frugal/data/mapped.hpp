// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/batch_memory.hpp>
#include <frugal/data/wrapped_source.hpp>

#include <ATen/ATen.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace frugal {

/// A source whose batches go through a function on their way: conversion, normalization,
/// augmentation.
///
/// Lever   idle device: a set can be kept as small as it is stored, and grow batch by batch.
/// Cost    the function, once a batch, where the source is read: inside a `Prefetch` in its worker.
///         A batch that is a view of the set's memory, as those of TensorDataset without shuffling, is
///         copied first, since the function may write into it (KeepsInput says that it does not).
/// Order   the source's; the function changes what a batch has, not which samples it is of.
/// Errors  those of the source and of the function.
///
/// A resumed run repeats an uninterrupted one as long as the function depends on its batch alone;
/// one that draws random numbers should draw from a generator of its own.
template <Source S, class F>
  requires std::invocable<F&, batch_of<S>>
class Mapped : public detail::WrappedSource<S> {
  using detail::WrappedSource<S>::source_;

 public:
  using batch_type = std::remove_cvref_t<std::invoke_result_t<F&, batch_of<S>>>;
  using order_type = detail::given_order_of<S>;

  explicit Mapped(S source, F function)
      : detail::WrappedSource<S>(std::move(source)), function_(std::move(function)) {}

  void seek(Cursor const& cursor) { source_.seek(cursor); }

  std::optional<batch_type> next() {
    auto batch = source_.next();
    if (!batch) return std::nullopt;
    if constexpr (!KeepsInput<F>) detail::own_memory(*batch);
    return function_(*std::move(batch));
  }

  std::uint64_t skip()
    requires SkippingSource<S>
  {
    return source_.skip();
  }
  void divide(Division const& own)
    requires DividableSource<S>
  {
    source_.divide(own);
  }

  std::uint64_t consumed() const
    requires ConsumingSource<S>
  {
    return source_.consumed();
  }

  void identify(DataIdentity& to) const {
    detail::identify(source_, to);
    detail::identify_transform(function_, "function", to);
  }

 private:
  F function_;
};

/// Pixels as stored, uint8 [B, ...], to float32 from 0 to 1: the byte divided by 255, the same
/// bits as `Pixels::scaled`. The set stays in a quarter of the memory, and a shuffled batch reads
/// a quarter of the bytes.
struct ScaleBytes {
  static constexpr bool keeps_input = true;

  Batch operator()(Batch batch) const {
    at::Tensor floats = batch.data.to(at::kFloat);
    // Floats are not converted: then it is the tensor of the set.
    batch.data = floats.is_same(batch.data) ? floats.div(255) : floats.div_(255);
    return batch;
  }
};

}  // namespace frugal
