// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/pad.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void Pad::add_fields(PaddedBatch& batch, std::vector<NamedTensors> of_samples,
                                   std::vector<at::Tensor> const& data,
                                   detail::SampleNames const& name) const {
  for (auto const& [field, padding] : fields) {
    std::vector<at::Tensor> rows;
    for (std::size_t i = 0; i < of_samples.size(); ++i) {
      auto const found = of_samples[i].find(field);
      if (found == of_samples[i].end()) refuse_missing(field, name(i));
      rows.push_back(std::move(found->second));
      of_samples[i].erase(found);
    }
    detail::require_alike(rows, name, "field '" + field + "'", /*padded=*/true);
    for (std::size_t i = 0; i < rows.size(); ++i) require_length(field, rows[i], data[i], name(i));
    batch.fields.emplace(field, pad(rows, padding, multiple).rows);
  }
  batch.fields.merge(detail::stacked(of_samples, name, "fields"));
}

FRUGAL_INLINE void Pad::require_length(std::string const& field, at::Tensor const& row,
                                       at::Tensor const& data, std::string const& sample) {
  if (row.size(0) == data.size(0)) return;
  throw ShapeError(
      {.what = "a field does not have the length of its data",
       .where = "field '" + field + "' of " + sample,
       .why = "it is " + detail::shape_text(row) + ", and its data are " + detail::shape_text(data),
       .fix = "Give one entry for each position, or leave the field out of "
              "Pad::fields to stack it."});
}

FRUGAL_INLINE void Pad::refuse_missing(std::string const& field, std::string const& sample) {
  throw DataError({.what = "a sample has no field '" + field + "'",
                   .where = sample,
                   .why = "Pad::fields names it",
                   .fix = "Give every sample that field, or remove it from Pad::fields."});
}

FRUGAL_INLINE bool Pad::has_positions(std::vector<at::Tensor> const& data,
                                      std::vector<at::Tensor> const& targets,
                                      detail::SampleNames const& name) {
  bool all = true;
  bool one_shape = true;
  std::size_t other = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (!targets[i].defined()) return false;  // which stacking refuses
    bool const fits = targets[i].dim() > 0 && targets[i].size(0) == data[i].size(0);
    if (!fits && all) other = i;
    all = all && fits;
    one_shape = one_shape && targets[i].sizes() == targets[0].sizes();
  }
  if (all || one_shape) return all;
  throw ShapeError({.what = "a target does not have the length of its data",
                    .where = "target of " + name(other),
                    .why = "it is " + detail::shape_text(targets[other]) + ", and its data are " +
                           detail::shape_text(data[other]),
                    .fix = "Give one label for each position, or targets of one shape."});
}

FRUGAL_INLINE void Pad::pad_targets(PaddedBatch& batch, std::vector<at::Tensor> targets,
                                    detail::SampleNames const& name) const {
  detail::require_alike(targets, name, "target", /*padded=*/true);
  bool const labels = at::isIntegralType(targets[0].scalar_type(), /*includeBool=*/false);
  if (labels) {
    batch.counts = at::empty_like(batch.lengths);
    auto* const count = static_cast<std::int64_t*>(batch.counts.mutable_data_ptr());
    for (std::size_t i = 0; i < targets.size(); ++i) {
      targets[i] = targets[i].to(at::kLong);
      count[i] = detail::count_labels_now(targets[i]);
    }
  }
  batch.target = pad(targets, labels ? static_cast<double>(ignored_label) : 0.0, multiple).rows;
  batch.target_padded = true;
}

FRUGAL_INLINE void Pad::count_rows(PaddedBatch& batch) {
  batch.counts = at::ones_like(batch.lengths);
  if (batch.target.scalar_type() != at::kLong) return;
  auto* const count = static_cast<std::int64_t*>(batch.counts.mutable_data_ptr());
  for (std::int64_t i = 0; i < batch.target.size(0); ++i) {
    count[i] = detail::count_labels_now(batch.target[i]);
  }
}

}  // namespace frugal
