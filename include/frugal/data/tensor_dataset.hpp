// SPDX-License-Identifier: Apache-2.0
// Shapes: N samples in the set, B in a batch, ... whatever one sample has.
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/data/rows.hpp>
#include <frugal/data/sampling/pass.hpp>

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

namespace detail {

/// A tensor of a set that lies in memory whole, without its gradient.
at::Tensor resident(at::Tensor tensor, std::string const& name);

/// Another tensor of such a set, `name`, has the data's samples and device.
void require_resident_alike(at::Tensor const& data, at::Tensor const& other,
                            std::string const& name);

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

  std::optional<Batch> next();

  /// Passes over a batch; returns its samples, 0 at the end of the epoch.
  std::uint64_t skip() { return pass_.advance().count; }

  std::uint64_t samples() const { return pass_.samples(); }
  std::uint64_t batches() const { return pass_.batches(); }
  std::int64_t batch_size() const { return pass_.loading().batch; }

  /// Reads every byte once, at the speed of memory.
  void identify(DataIdentity& to) const;

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

#ifndef FRUGAL_COMPILED
#include <frugal/data/tensor_dataset.ipp>
#endif
