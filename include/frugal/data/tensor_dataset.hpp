// SPDX-License-Identifier: Apache-2.0
// Shapes: N samples in the set, which are rows of its tensors, B in a batch, ... whatever one sample has.
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/data/fields_batch.hpp>
#include <frugal/data/sampling/pass.hpp>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// A tensor [N, ...] from which batches of rows [B, ...] are taken.
///
/// `at::index_select` on the host dispatches six operators for rows of more than one element
/// (the output, and two views of a first row that it measures strides with). Rows of a contiguous
/// host tensor are blocks of memory, so they are copied as such: one allocation, one operator
/// (`aten::empty`), the same bits. Every other tensor goes through index_select.
class Rows {
 public:
  explicit Rows(at::Tensor tensor);

  at::Tensor const& tensor() const { return tensor_; }

  /// Rows [first, first + n), as a view.
  at::Tensor slice(std::int64_t first, std::int64_t n);

  /// Whether `gather` wants the indices on the host or as a tensor on the rows' device.
  bool by_blocks() const { return blocks_; }

  /// The rows at the indices, each below N, in the indices' order.
  at::Tensor gather(std::span<std::int64_t const> indices);
  at::Tensor gather(at::Tensor const& index_B) const { return tensor_.index_select(0, index_B); }

 private:
  static std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

  // Shuffled rows are nowhere near each other, so the processor cannot foresee where the next one
  // begins; once a row is being read, it can. Measured on rows of 3 KiB: a quarter of the time.
  static constexpr std::int64_t rows_ahead = 2;
  static constexpr std::size_t begin_bytes = 512, line_bytes = 64;
  void prefetch(std::byte const* row) const;

  at::Tensor tensor_;
  at::DimVector sizes_;  // of a batch; the first is set for each
  bool blocks_;
  std::size_t row_bytes_ = 0;
};

namespace detail {

/// A tensor of a set that lies in memory whole, without its gradient.
at::Tensor resident(at::Tensor tensor, std::string const& name);

/// DataError: the set was moved from.
[[noreturn]] void refuse_moved_set(char const* type);

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

/// A TensorDataset with fields: data [N, ...], target [N, ...] and each field [N, ...] lie in
/// memory whole, on one device. The target may be undefined. Cost, order and errors are those of TensorDataset, per tensor.
class FieldsDataset {
 public:
  explicit FieldsDataset(FieldsBatch set, LoaderOptions loading = {});

  void seek(Cursor const& cursor) { pass_.seek(cursor); }

  std::optional<FieldsBatch> next();

  /// Passes over a batch; returns its samples, 0 at the end of the epoch.
  std::uint64_t skip() { return pass_.advance().count; }

  std::uint64_t samples() const { return pass_.samples(); }
  std::uint64_t batches() const { return pass_.batches(); }
  std::int64_t batch_size() const { return pass_.loading().batch; }

  /// Reads every byte once, at the speed of memory.
  void identify(DataIdentity& to) const;

 private:
  /// Data and target first: no field has their names here, see `label`.
  enum class Kind : std::uint8_t { data, target, field };
  struct Name {
    Kind kind;
    std::string text;
  };
  using Parts = std::vector<std::pair<Name, Rows>>;

  FieldsDataset(Parts parts, LoaderOptions loading);

  static Parts rows_of(FieldsBatch set);

  static std::string label(Name const& name) {
    return name.kind == Kind::field ? "field '" + name.text + "'" : name.text;
  }

  static void place(FieldsBatch& batch, Name const& name, at::Tensor part);

  Parts parts_;
  Pass pass_;
  std::vector<std::int64_t> indices_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/tensor_dataset.ipp>
#endif
