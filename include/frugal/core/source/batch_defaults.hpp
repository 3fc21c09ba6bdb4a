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
#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/shape_text.hpp>
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
