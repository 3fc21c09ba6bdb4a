// SPDX-License-Identifier: Apache-2.0
// Shapes: N samples in the set, B in a batch, ... whatever one sample has.
#pragma once

#include <frugal/data/loading.hpp>
#include <frugal/error.hpp>
#include <frugal/loop/batch.hpp>

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>

namespace frugal {

namespace detail {

/// An index tensor [B] on the host that is written anew for every batch. A copy of its owner
/// gets one of its own: two sources that wrote to one buffer would mix their orders.
class IndexBuffer {
 public:
  IndexBuffer() = default;
  IndexBuffer(IndexBuffer const&) {}
  IndexBuffer(IndexBuffer&&) noexcept = default;
  IndexBuffer& operator=(IndexBuffer const&) { return *this; }
  IndexBuffer& operator=(IndexBuffer&&) noexcept = default;
  ~IndexBuffer() = default;

  at::Tensor const& of(std::int64_t count) {
    if (!tensor_.defined() || tensor_.numel() != count) tensor_ = at::empty({count}, at::kLong);
    return tensor_;
  }

 private:
  at::Tensor tensor_;
};

inline std::string shape_text(at::Tensor const& tensor) {
  std::ostringstream text;
  text << tensor.sizes();
  return text.str();
}

}  // namespace detail

/// A data set that lies in memory whole, on any device: data [N, ...] and target [N, ...].
///
/// Lever   idle device: no decoding, no copying sample by sample.
/// Cost    per batch one index_select per tensor and no other operator; without shuffling one
///         slice per tensor, which copies nothing, so that the batches are views of the set.
///         On a device other than the host, one copy of B indices besides.
/// Order   a function of seed and epoch alone; any cursor position may be sought, in O(1).
/// Errors  ShapeError where the lengths differ, EmptySourceError without samples, DataError
///         where the tensors are on two devices; those of Pass.
///
/// The set carries no gradient: a tensor that requires one is detached.
class Resident {
 public:
  Resident(at::Tensor data, at::Tensor target, Loading loading = {})
      : data_(checked(std::move(data), "data")),
        target_(checked(std::move(target), "target")),
        pass_(samples_of(data_, target_), loading, "resident data " + detail::shape_text(data_)) {}

  explicit Resident(Batch set, Loading loading = {})
      : Resident(std::move(set.data), std::move(set.target), loading) {}

  void seek(Cursor const& cursor) { pass_.seek(cursor); }

  std::optional<Batch> next() {
    Pass::Slice const slice = pass_.advance();
    if (slice.count == 0) return std::nullopt;
    auto const first = static_cast<std::int64_t>(slice.first);
    auto const count = static_cast<std::int64_t>(slice.count);
    if (!pass_.loading().shuffle) {
      return Batch{data_.slice(0, first, first + count), target_.slice(0, first, first + count)};
    }
    at::Tensor const& index = index_.of(count);
    // The buffer is free again once index_select returns: on the host it has been read, and a
    // copy from pageable memory to a device is staged before the call comes back.
    pass_.indices(slice, std::span(index.mutable_data_ptr<std::int64_t>(), slice.count));
    if (data_.is_cpu()) return gather(index);
    return gather(index.to(data_.device(), /*non_blocking=*/true));
  }

  std::uint64_t samples() const { return pass_.samples(); }
  std::uint64_t batches() const { return pass_.batches(); }

  at::Tensor const& data() const { return data_; }
  at::Tensor const& target() const { return target_; }

 private:
  Batch gather(at::Tensor const& index) const {
    return {data_.index_select(0, index), target_.index_select(0, index)};
  }

  static at::Tensor checked(at::Tensor tensor, char const* name) {
    if (!tensor.defined() || tensor.dim() == 0) {
      throw ShapeError({.what = std::string(name) + " has no first dimension to take samples from",
                        .where = tensor.defined() ? "shape []" : "an undefined tensor",
                        .why = "",
                        .mend = "Give a tensor of shape [samples, ...]."});
    }
    return tensor.requires_grad() ? tensor.detach() : tensor;
  }

  static std::uint64_t samples_of(at::Tensor const& data, at::Tensor const& target) {
    if (data.size(0) != target.size(0)) {
      throw ShapeError(
          {.what = "data and target differ in length",
           .where = "data " + detail::shape_text(data) + ", target " + detail::shape_text(target),
           .why = "the first dimension counts samples in both",
           .mend = "Give one target per sample."});
    }
    if (data.device() != target.device()) {
      throw DataError(
          {.what = "data and target lie on two devices",
           .where = "data on " + data.device().str() + ", target on " + target.device().str(),
           .why = "",
           .mend = "Move both to one of them."});
    }
    return static_cast<std::uint64_t>(data.size(0));
  }

  at::Tensor data_;    // [N, ...]
  at::Tensor target_;  // [N, ...]
  Pass pass_;
  detail::IndexBuffer index_;
};

}  // namespace frugal
