// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <frugal/core/source/each_tensor.hpp>
#include <frugal/core/source/fields.hpp>      // IWYU pragma: export
#include <frugal/core/source/shape_text.hpp>  // IWYU pragma: export
#include <frugal/error.hpp>

namespace frugal::detail {

/// One tensor as data and one as target, and nothing else: needs no check for undefined tensors,
/// which no source yields, and no walk.
template <class B>
concept PlainBatch = requires(B const& batch) {
  requires IsTensor<std::remove_cvref_t<decltype(batch.data)>>;
  requires IsTensor<std::remove_cvref_t<decltype(batch.target)>>;
} && !DeclaresTensors<B> && !ListsTensors<B>;

/// Defaults that follow from the tensors of a batch, for members that its batch_traits lack.
template <class B>
struct batch_defaults {
  /// The first dimension of its data: of the first tensor that has one; in a map of "data" or
  /// "input_ids", where there is such an entry. Throws ShapeError if no tensor has one.
  static std::int64_t samples(B const& batch)
    requires ShowsTensors<B>
  {
    if constexpr (IsTensor<B>) {
      return batch.size(0);
    } else if constexpr (PlainBatch<B>) {
      return batch.data.size(0);
    } else {
      if constexpr (OfMap<B>) {
        if (auto const* data = entry_if(batch, "data", "input_ids")) {
          return batch_defaults<typename B::mapped_type>::samples(*data);
        }
      }
      std::int64_t found = -1;
      show_tensors(batch, [&](at::Tensor const& tensor) {
        if (found < 0 && tensor.defined() && tensor.dim() > 0) found = tensor.size(0);
      });
      if (found < 0) refuse_scalars();
      return found;
    }
  }

  /// Elements of the target, which for class labels is samples; of the first tensor where there is
  /// no target.
  static std::int64_t tokens(B const& batch)
    requires ShowsTensors<B>
  {
    if constexpr (IsTensor<B>) {
      return batch.numel();
    } else if constexpr (OfMap<B>) {
      if (auto const* target = entry_if(batch, "target", "labels")) return elements(*target);
      if (auto const* data = entry_if(batch, "data", "input_ids")) return elements(*data);
      return first_elements(batch);
    } else if constexpr (OfList<B>) {
      return batch.size() > 1 ? elements(batch[1]) : first_elements(batch);
    } else if constexpr (OfBothMembers<B> || (OfTuple<B> && HasTarget<B>)) {
      return elements(batch_target(batch));
    } else {
      return first_elements(batch);
    }
  }

  /// Moves the batch; a batch that is there already costs one comparison and no dispatch.
  static void to(B& batch, at::Device device)
    requires ShowsTensors<B>
  {
    if constexpr (PlainBatch<B>) {
      move(batch.data, device);
      move(batch.target, device);
    } else {
      show_tensors(batch, [&](at::Tensor& tensor) {
        if (tensor.defined()) move(tensor, device);
      });
    }
  }

  /// Samples `begin` to `begin + count`: of every tensor, as views; all else is copied as it is.
  /// Throws ShapeError for a tensor whose first dimension does not count the samples.
  static B narrow(B const& batch, std::int64_t begin, std::int64_t count)
    requires(ShowsTensors<B> && !HidesParts<B> && std::copyable<B>)
  {
    std::int64_t const all = batch_traits_samples(batch);
    B part = batch;
    std::size_t which = 0;
    show_tensors(part, [&](at::Tensor& tensor) {
      if (tensor.defined()) {
        if (tensor.dim() == 0 || tensor.size(0) != all) refuse_to_split(tensor, which, all);
        tensor = tensor.narrow(0, begin, count);
      }
      ++which;
    });
    return part;
  }

 private:
  static void move(at::Tensor& tensor, at::Device device) {
    if (tensor.device() != device) tensor = tensor.to(device, /*non_blocking=*/true);
  }

  template <class Part>
  static std::int64_t elements(Part const& part) {
    std::int64_t sum = 0;
    show_tensors(part, [&](at::Tensor const& tensor) { sum += tensor.numel(); });
    return sum;
  }
  static std::int64_t first_elements(B const& batch) {
    std::int64_t found = -1;
    show_tensors(batch, [&](at::Tensor const& tensor) {
      if (found < 0 && tensor.defined()) found = tensor.numel();
    });
    return found < 0 ? 0 : found;
  }

  static std::int64_t batch_traits_samples(B const& batch) {
    if constexpr (requires { batch_traits<B>::samples(batch); }) {
      return batch_traits<B>::samples(batch);
    } else {
      return samples(batch);
    }
  }

  [[noreturn]] static void refuse_scalars() {
    throw ShapeError({.what = "a batch has no tensor whose first dimension counts its samples",
                      .where = "batch_traits::samples",
                      .why = "its tensors are undefined or of zero dimensions",
                      .fix = "Give tensors of shape [samples, ...], or specialise "
                             "batch_traits<B>::samples(batch) for this batch type."});
  }

  [[noreturn]] static void refuse_to_split(at::Tensor const& tensor, std::size_t which,
                                           std::int64_t samples) {
    std::string const place = "tensor " + std::to_string(which);
    throw ShapeError(
        {.what = place + " of the batch cannot be split by samples",
         .where = place + ", " + shape_text(tensor),
         .why = (tensor.dim() == 0 ? "it has no dimension"
                                   : "its first dimension is " + std::to_string(tensor.size(0))) +
                std::string(", and the batch has ") + std::to_string(samples) + " samples",
         .fix = "Specialise batch_traits<B>::narrow(batch, begin, count) for this batch type."});
  }
};

}  // namespace frugal::detail

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
