// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/pad.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::int64_t host_sum(at::Tensor const& numbers) {
  auto const* const number = static_cast<std::int64_t const*>(numbers.const_data_ptr());
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < numbers.numel(); ++i) sum += number[i];
  return sum;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE PaddedRows pad(std::vector<at::Tensor> const& rows, double value,
                             std::int64_t multiple) {
  if (multiple < 1) {
    throw SettingsError({.what = "rows are padded to a multiple of " + std::to_string(multiple),
                         .where = "pad",
                         .why = "",
                         .fix = "Give 1 for the longest row, or more."});
  }
  if (rows.empty()) {
    throw EmptySourceError({.what = "there are no rows to pad",
                            .where = "pad",
                            .why = "",
                            .fix = "Give at least one."});
  }
  at::Tensor const lengths =
      at::empty({static_cast<std::int64_t>(rows.size())}, at::TensorOptions(at::kLong));
  auto* const length = static_cast<std::int64_t*>(lengths.mutable_data_ptr());
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    length[i] = rows[i].size(0);
    longest = std::max(longest, length[i]);
  }
  std::int64_t const whole = (longest + multiple - 1) / multiple * multiple;
  at::Tensor padded = at::pad_sequence(rows, /*batch_first=*/true, value);
  if (whole > longest) {
    std::vector<std::int64_t> more(2 * static_cast<std::size_t>(padded.dim() - 1), 0);
    more.back() = whole - longest;  // pairs from the last dimension on: after the positions
    padded = at::constant_pad_nd(padded, more, value);
  }
  at::Tensor mask = at::arange(whole, at::kLong).unsqueeze(0).lt(lengths.unsqueeze(1));
  if (!padded.is_cpu()) mask = mask.to(padded.device(), /*non_blocking=*/true);
  return {std::move(padded), std::move(mask), lengths};
}

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
