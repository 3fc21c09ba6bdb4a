// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/fields_dataset.hpp>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <span>

namespace frugal {

FRUGAL_INLINE FieldsDataset::FieldsDataset(FieldsBatch set, LoaderOptions loading)
    : FieldsDataset(rows_of(std::move(set)), loading) {}

FRUGAL_INLINE std::optional<FieldsBatch> FieldsDataset::next() {
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

FRUGAL_INLINE void FieldsDataset::identify(DataIdentity& to) const {
  pass_.identify(to);
  for (auto const& [name, rows] : parts_) {
    to.add(label(name), detail::tensor_identity(rows.tensor()));
  }
}

FRUGAL_INLINE FieldsDataset::FieldsDataset(Parts parts, LoaderOptions loading)
    : parts_(std::move(parts)),
      pass_(static_cast<std::uint64_t>(parts_.front().second.tensor().size(0)), loading,
            "resident data " + detail::shape_text(parts_.front().second.tensor())) {}

FRUGAL_INLINE FieldsDataset::Parts FieldsDataset::rows_of(FieldsBatch set) {
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

FRUGAL_INLINE void FieldsDataset::place(FieldsBatch& batch, Name const& name, at::Tensor part) {
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

}  // namespace frugal
