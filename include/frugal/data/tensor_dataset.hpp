// SPDX-License-Identifier: Apache-2.0
// Shapes: N samples in the set, B in a batch, ... whatever one sample has.
#pragma once

#include <frugal/data/batch.hpp>
#include <frugal/data/data_identity.hpp>
#include <frugal/data/rows.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/tensor_identity.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

namespace detail {

/// A tensor of a set that lies in memory whole, without its gradient.
FRUGAL_INLINE at::Tensor resident(at::Tensor tensor, std::string const& name) {
  if (!tensor.defined() || tensor.dim() == 0) {
    throw ShapeError({.what = name + " has no first dimension to take samples from",
                      .where = tensor.defined() ? "shape []" : "an undefined tensor",
                      .why = "",
                      .fix = "Give a tensor of shape [samples, ...]."});
  }
  if (tensor.requires_grad()) return tensor.detach();
  return tensor;
}

/// Another tensor of such a set, `name`, has the data's samples and device.
FRUGAL_INLINE void require_resident_alike(at::Tensor const& data, at::Tensor const& other,
                                          std::string const& name) {
  if (data.size(0) != other.size(0)) {
    throw ShapeError({.what = "data and " + name + " differ in length",
                      .where = "data " + shape_text(data) + ", " + name + " " + shape_text(other),
                      .why = "the first dimension counts samples in both",
                      .fix = "Give one " + name + " per sample."});
  }
  if (data.device() != other.device()) {
    throw DataError(
        {.what = "data and " + name + " are on two devices",
         .where = "data on " + data.device().str() + ", " + name + " on " + other.device().str(),
         .why = "",
         .fix = "Move both to one of them."});
  }
}

}  // namespace detail

/// A data set that lies in memory whole, on any device: data [N, ...] and target [N, ...].
///
/// Lever   idle device: no decoding, no copying sample by sample.
/// Cost    per batch and tensor one gather: on the host one operator and one allocation (see
///         Rows), on a device one index_select, and one copy of B indices for both. Without
///         shuffling one view per tensor, which copies nothing.
/// Order   a function of seed and epoch alone; any cursor position may be sought, in O(1).
/// Errors  ShapeError where the lengths differ, EmptySourceError without samples, DataError
///         where the tensors are on two devices; those of Pass.
///
/// The set carries no gradient: a tensor that requires one is detached.
class TensorDataset {
 public:
  TensorDataset(at::Tensor data, at::Tensor target, LoaderOptions loading = {})
      : data_(detail::resident(std::move(data), "data")),
        target_(detail::resident(std::move(target), "target")),
        pass_(samples_of(data_.tensor(), target_.tensor()), loading,
              "resident data " + detail::shape_text(data_.tensor())) {}

  explicit TensorDataset(Batch set, LoaderOptions loading = {})
      : TensorDataset(std::move(set.data), std::move(set.target), loading) {}

  void seek(Cursor const& cursor) { pass_.seek(cursor); }

  FRUGAL_INLINE std::optional<Batch> next() {
    Pass::Slice const slice = pass_.advance();
    if (slice.count == 0) return std::nullopt;
    auto const first = static_cast<std::int64_t>(slice.first);
    auto const count = static_cast<std::int64_t>(slice.count);
    if (!pass_.shuffles()) {
      return Batch{data_.slice(first, count), target_.slice(first, count)};
    }
    indices_.resize(slice.count);
    pass_.indices(slice, std::span(indices_));
    if (data_.by_blocks() && target_.by_blocks()) {
      return Batch{data_.gather(indices_), target_.gather(indices_)};
    }
    // Pageable memory is staged before an asynchronous copy comes back: no wait for the device,
    // and nothing that the next batch could overwrite.
    at::Tensor const index_B =
        at::tensor(indices_).to(data_.tensor().device(), /*non_blocking=*/true);
    return Batch{data_.gather(index_B), target_.gather(index_B)};
  }

  /// Passes over a batch; returns its samples, 0 at the end of the epoch.
  std::uint64_t skip() { return pass_.advance().count; }

  std::uint64_t samples() const { return pass_.samples(); }
  std::uint64_t batches() const { return pass_.batches(); }
  std::int64_t batch_size() const { return pass_.loading().batch; }

  /// Reads every byte once, at the speed of memory.
  FRUGAL_INLINE void identify(DataIdentity& to) const {
    pass_.identify(to);
    to.add("data", detail::tensor_identity(data_.tensor()));
    to.add("target", detail::tensor_identity(target_.tensor()));
  }

  at::Tensor const& data() const { return data_.tensor(); }
  at::Tensor const& target() const { return target_.tensor(); }

 private:
  static std::uint64_t samples_of(at::Tensor const& data, at::Tensor const& target) {
    detail::require_resident_alike(data, target, "target");
    return static_cast<std::uint64_t>(data.size(0));
  }

  Rows data_;    // [N, ...]
  Rows target_;  // [N, ...]
  Pass pass_;
  std::vector<std::int64_t> indices_;
};

}  // namespace frugal
