// SPDX-License-Identifier: Apache-2.0
// Shapes: N samples in the set, B in a batch, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <frugal/data/data_identity.hpp>
#include <frugal/data/fields_batch.hpp>
#include <frugal/data/rows.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/shape_text.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/data/tensor_identity.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// A TensorDataset with fields: data [N, ...], target [N, ...] and each field [N, ...] lie in
/// memory whole, on one device. The target may be undefined. Cost, order and errors are those of TensorDataset, per tensor.
class FieldsDataset {
 public:
  FRUGAL_INLINE explicit FieldsDataset(FieldsBatch set, LoaderOptions loading = {})
      : FieldsDataset(rows_of(std::move(set)), loading) {}

  void seek(Cursor const& cursor) { pass_.seek(cursor); }

  FRUGAL_INLINE std::optional<FieldsBatch> next() {
    Pass::Slice const slice = pass_.advance();
    if (slice.count == 0) return std::nullopt;
    at::Tensor index_B;
    if (pass_.shuffles()) {
      indices_.resize(slice.count);
      pass_.indices(slice, std::span(indices_));
    }
    FieldsBatch batch;
    for (auto& [name, rows] : parts_) {
      at::Tensor part;
      if (!pass_.shuffles()) {
        part = rows.slice(static_cast<std::int64_t>(slice.first),
                          static_cast<std::int64_t>(slice.count));
      } else if (rows.by_blocks()) {
        part = rows.gather(indices_);
      } else {
        if (!index_B.defined()) {
          index_B = at::tensor(indices_).to(rows.tensor().device(), /*non_blocking=*/true);
        }
        part = rows.gather(index_B);
      }
      place(batch, name, std::move(part));
    }
    return batch;
  }

  /// Passes over a batch; returns its samples, 0 at the end of the epoch.
  std::uint64_t skip() { return pass_.advance().count; }

  std::uint64_t samples() const { return pass_.samples(); }
  std::uint64_t batches() const { return pass_.batches(); }
  std::int64_t batch_size() const { return pass_.loading().batch; }

  /// Reads every byte once, at the speed of memory.
  FRUGAL_INLINE void identify(DataIdentity& to) const {
    pass_.identify(to);
    for (auto const& [name, rows] : parts_) {
      to.add(label(name), detail::tensor_identity(rows.tensor()));
    }
  }

 private:
  /// Data and target first: no field has their names here, see `label`.
  enum class Kind : std::uint8_t { data, target, field };
  struct Name {
    Kind kind;
    std::string text;
  };
  using Parts = std::vector<std::pair<Name, Rows>>;

  FRUGAL_INLINE FieldsDataset(Parts parts, LoaderOptions loading)
      : parts_(std::move(parts)),
        pass_(static_cast<std::uint64_t>(parts_.front().second.tensor().size(0)), loading,
              "resident data " + detail::shape_text(parts_.front().second.tensor())) {}

  FRUGAL_INLINE static Parts rows_of(FieldsBatch set) {
    Parts parts;
    auto const add = [&](Kind kind, std::string const& text, at::Tensor tensor) {
      Name const name{kind, text};
      at::Tensor rows = detail::resident(std::move(tensor), label(name));
      if (!parts.empty()) {
        detail::require_resident_alike(parts.front().second.tensor(), rows, label(name));
      }
      parts.emplace_back(name, Rows(std::move(rows)));
    };
    add(Kind::data, "data", std::move(set.data));
    if (set.target.defined()) add(Kind::target, "target", std::move(set.target));
    for (auto& [name, tensor] : set.fields) add(Kind::field, name, std::move(tensor));
    return parts;
  }

  static std::string label(Name const& name) {
    return name.kind == Kind::field ? "field '" + name.text + "'" : name.text;
  }

  FRUGAL_INLINE static void place(FieldsBatch& batch, Name const& name, at::Tensor part) {
    switch (name.kind) {
      case Kind::data:
        batch.data = std::move(part);
        break;
      case Kind::target:
        batch.target = std::move(part);
        break;
      case Kind::field:
        batch.fields.emplace_hint(batch.fields.end(), name.text, std::move(part));
        break;
    }
  }

  Parts parts_;
  Pass pass_;
  std::vector<std::int64_t> indices_;
};

}  // namespace frugal
