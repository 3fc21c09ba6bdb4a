// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <frugal/core/source/batch_defaults.hpp>
#include <frugal/core/source/each_tensor.hpp>
#include <frugal/core/source/fields.hpp>      // IWYU pragma: export
#include <frugal/core/source/shape_text.hpp>  // IWYU pragma: export

namespace frugal {

/// A batch of frugal's own sources: data [B, ...] and target [B, ...], on one device.
struct Batch {
  at::Tensor data;
  at::Tensor target;
};

/// The loop's view of a batch type. Tensors, and pairs, tuples, arrays, vectors and maps of them,
/// need nothing; neither does a type that names its tensors:
///
///     struct Masked {
///       at::Tensor ids, mask, labels;
///       void each_tensor(auto&& f) { f(ids, mask, labels); }
///     };
///
/// For a type that you cannot change, specialise this with a static `each_tensor(batch, f)`, in the
/// same way. The rest follows from it. Static members of batch_traits replace the defaults:
/// `samples(batch)`, `tokens(batch)`, `to(batch, device)` and `narrow(batch, begin, count)`.
template <class B>
struct batch_traits : detail::batch_defaults<B> {
  /// Calls `f(tensor)` for every tensor, in one order.
  template <class Self, class F>
    requires std::same_as<std::remove_const_t<Self>, B> && detail::Transparent<B>
  static void each_tensor(Self& batch, F&& f) {
    detail::show_transparent(batch, f);
  }
};

namespace detail {

/// Prints the sentence for an unknown batch type once.
template <class B>
std::int64_t unknown_batch() {
  static_assert(ShowsTensors<B>,
                "frugal: the loop does not know the tensors of this batch type. Give it a member "
                "`void each_tensor(auto&& f) { f(a, b); }` that names them, or specialise "
                "frugal::batch_traits for it.");
  return 0;
}

}  // namespace detail

/// Calls `f(tensor)` for every tensor of a batch, in one order, undefined ones included.
template <class B, class F>
void batch_tensors(B& batch, F&& f) {
  detail::show_tensors(batch, f);
}

/// Samples in a batch.
template <class B>
std::int64_t batch_samples(B const& batch) {
  if constexpr (requires { batch_traits<B>::samples(batch); }) {
    return batch_traits<B>::samples(batch);
  } else if constexpr (ShowsTensors<B>) {
    return detail::batch_defaults<B>::samples(batch);
  } else {
    return detail::unknown_batch<B>();
  }
}

/// Tokens in a batch.
template <class B>
std::int64_t batch_tokens(B const& batch) {
  if constexpr (requires { batch_traits<B>::tokens(batch); }) {
    return batch_traits<B>::tokens(batch);
  } else if constexpr (ShowsTensors<B>) {
    return detail::batch_defaults<B>::tokens(batch);
  } else {
    return detail::unknown_batch<B>();
  }
}

/// Moves a batch to a device; host memory that is page-locked is copied without a wait.
template <class B>
void batch_to(B& batch, at::Device device) {
  if constexpr (requires { batch_traits<B>::to(batch, device); }) {
    batch_traits<B>::to(batch, device);
  } else if constexpr (ShowsTensors<B>) {
    detail::batch_defaults<B>::to(batch, device);
  } else {
    detail::unknown_batch<B>();
  }
}

/// A batch that can be split by samples.
template <class B>
concept Splittable = requires(B const& batch, std::int64_t at) {
  { batch_traits<B>::narrow(batch, at, at) } -> std::convertible_to<B>;
} || requires(B const& batch, std::int64_t at) {
  detail::batch_defaults<B>::narrow(batch, at, at);
};

/// Samples `begin` to `begin + count` of a batch, as views.
template <Splittable B>
B batch_narrow(B const& batch, std::int64_t begin, std::int64_t count) {
  if constexpr (requires { batch_traits<B>::narrow(batch, begin, count); }) {
    return batch_traits<B>::narrow(batch, begin, count);
  } else {
    return detail::batch_defaults<B>::narrow(batch, begin, count);
  }
}

}  // namespace frugal
