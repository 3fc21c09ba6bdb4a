// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>

namespace frugal {

/// What frugal's own sources yield: data [B, ...] and target [B, ...], same device.
struct Batch {
  at::Tensor data;
  at::Tensor target;
};

namespace detail {

/// "[32, 784] Float", for messages.
inline std::string shape_text(at::Tensor const& tensor) {
  if (!tensor.defined()) return "undefined";
  std::ostringstream text;
  text << tensor.sizes() << ' ' << tensor.scalar_type();
  return text.str();
}

}  // namespace detail

/// What the loop must know of a batch. Specialise it for a batch type of your own:
/// how many samples and tokens it holds, and how it moves to a device. What splits batches
/// (Accumulate<Auto>) also asks for a part of one.
template <class B>
struct batch_traits {
  /// Samples in the batch: the first dimension of its data.
  static std::int64_t samples(B const& batch) { return batch.data.size(0); }

  /// Tokens in the batch: elements of the target, which for class labels is samples.
  static std::int64_t tokens(B const& batch) { return batch.target.numel(); }

  /// Moves the batch; a batch that is there already costs one comparison and no dispatch.
  static void to(B& batch, at::Device device) {
    if (batch.data.device() != device) batch.data = batch.data.to(device, /*non_blocking=*/true);
    if (batch.target.device() != device) {
      batch.target = batch.target.to(device, /*non_blocking=*/true);
    }
  }

  /// Calls `f(tensor)` for every tensor that the objective reads, in one order; for Graph and
  /// Device.
  template <class Self, class F>
    requires std::same_as<std::remove_const_t<Self>, B>
  static void each_tensor(Self& batch, F&& f) {
    f(batch.data);
    f(batch.target);
  }

  /// Samples `begin` to `begin + count` of the batch, as views. A batch type of one's own may have
  /// more in it than these two tensors, and so has to say itself what a part of it is.
  static B narrow(B const& batch, std::int64_t begin, std::int64_t count)
    requires std::same_as<B, Batch>
  {
    return {batch.data.narrow(0, begin, count), batch.target.narrow(0, begin, count)};
  }
};

/// A bare tensor is a batch without a target (language models, autoencoders).
template <>
struct batch_traits<at::Tensor> {
  static std::int64_t samples(at::Tensor const& batch) { return batch.size(0); }
  static std::int64_t tokens(at::Tensor const& batch) { return batch.numel(); }
  static void to(at::Tensor& batch, at::Device device) {
    if (batch.device() != device) batch = batch.to(device, /*non_blocking=*/true);
  }
  template <class Self, class F>
    requires std::same_as<std::remove_const_t<Self>, at::Tensor>
  static void each_tensor(Self& batch, F&& f) {
    f(batch);
  }

  static at::Tensor narrow(at::Tensor const& batch, std::int64_t begin, std::int64_t count) {
    return batch.narrow(0, begin, count);
  }
};

/// A batch of which a part can be taken.
template <class B>
concept Splittable = requires(B const& batch, std::int64_t at) {
  { batch_traits<B>::narrow(batch, at, at) } -> std::convertible_to<B>;
};

}  // namespace frugal
