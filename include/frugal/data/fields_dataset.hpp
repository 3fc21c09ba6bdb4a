// SPDX-License-Identifier: Apache-2.0
// Shapes: N samples in the set, B in a batch, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/source/data_identity.hpp>
#include <frugal/data/fields_batch.hpp>
#include <frugal/data/rows.hpp>
#include <frugal/data/sampling/pass.hpp>

namespace frugal {

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
#include <frugal/data/fields_dataset.ipp>
#endif
