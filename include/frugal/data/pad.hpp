// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, T positions of the longest (or more), ... whatever one position
// has.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/data/collate.hpp>
#include <frugal/data/fields.hpp>
#include <frugal/data/labels.hpp>
#include <frugal/data/named_tensors.hpp>
#include <frugal/data/padded.hpp>
#include <frugal/data/sample_names.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

namespace detail {

/// A sample whose data are one tensor.
template <class S>
concept PaddableSample = HasData<S> && requires(S const& sample) {
  requires IsTensor<std::remove_cvref_t<decltype(batch_data(sample))>>;
};

}  // namespace detail

/// A collate function: makes one batch of samples whose data [T_i, ...] differ in their first
/// dimension. A sample is a tensor, or has data and perhaps a target (see batch_data).
///
/// Targets with a label for each position are padded with the data: integers with -100, which
/// cross entropy leaves out, as int64; others with 0, under the mask. Numbers, and targets of one
/// shape that do not have the data's length, are stacked.
///
/// Fields are all that a FieldsBatch has in addition, or a map besides its data and target. Those
/// named in `fields` have something for each position, as an attention mask has, and are padded
/// with the data; the others are stacked.
///
/// Errors  those of Stack; ShapeError for data without a first dimension, and for targets and
///         fields that do not fit; DataError for a sample of length 0, and for one that lacks a
///         field; SettingsError for a multiple below 1.
struct Pad {
  double value = 0;           ///< what the data are padded with
  std::int64_t multiple = 1;  ///< positions are padded on to a multiple of this
  /// The fields with positions, and what each is padded with: `{{"attention_mask", 0}}`.
  std::map<std::string, double> fields{};

  template <detail::PaddableSample S>
  PaddedBatch operator()(std::vector<S> const& samples,
                         std::span<std::size_t const> indices = {}) const {
    detail::SampleNames const name(indices);
    auto const data =
        detail::parts_of(samples, [](S const& s) -> at::Tensor { return batch_data(s); });
    detail::require_alike(data, name, "data", /*padded=*/true);
    PaddedRows rows = pad(data, value, multiple);
    PaddedBatch batch{.data = std::move(rows.rows),
                      .mask = std::move(rows.mask),
                      .lengths = rows.lengths,
                      .counts = rows.lengths};
    if constexpr (detail::HasFields<S>) {
      add_fields(batch, detail::parts_of(samples, detail::fields_of<S>), data, name);
    } else if (!fields.empty()) {
      refuse_missing(fields.begin()->first, name(0));
    }
    if constexpr (HasTarget<S>) {
      auto targets = detail::parts_of(samples, [](S const& s) { return batch_target(s); });
      using Target = typename decltype(targets)::value_type;
      if constexpr (detail::FieldsMember<S>) {
        auto const is_defined = [](at::Tensor const& target) { return target.defined(); };
        if (std::none_of(targets.begin(), targets.end(), is_defined)) return batch;
      }
      if constexpr (detail::IsTensor<Target>) {
        if (has_positions(data, targets, name)) {
          pad_targets(batch, std::move(targets), name);
          return batch;
        }
      }
      batch.target = detail::stacked(targets, name, "target");
      count_rows(batch);
    }
    return batch;
  }

 private:
  FRUGAL_INLINE void add_fields(PaddedBatch& batch, std::vector<NamedTensors> of_samples,
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
      for (std::size_t i = 0; i < rows.size(); ++i)
        require_length(field, rows[i], data[i], name(i));
      batch.fields.emplace(field, pad(rows, padding, multiple).rows);
    }
    batch.fields.merge(detail::stacked(of_samples, name, "fields"));
  }

  FRUGAL_INLINE static void require_length(std::string const& field, at::Tensor const& row,
                                           at::Tensor const& data, std::string const& sample) {
    if (row.size(0) == data.size(0)) return;
    throw ShapeError({.what = "a field does not have the length of its data",
                      .where = "field '" + field + "' of " + sample,
                      .why = "it is " + detail::shape_text(row) + ", and its data are " +
                             detail::shape_text(data),
                      .fix = "Give one entry for each position, or leave the field out of "
                             "Pad::fields to stack it."});
  }
  [[noreturn]] FRUGAL_INLINE static void refuse_missing(std::string const& field,
                                                        std::string const& sample) {
    throw DataError({.what = "a sample has no field '" + field + "'",
                     .where = sample,
                     .why = "Pad::fields names it",
                     .fix = "Give every sample that field, or remove it from Pad::fields."});
  }

  /// Whether targets have the lengths of their data. Those of one shape need not.
  FRUGAL_INLINE static bool has_positions(std::vector<at::Tensor> const& data,
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

  FRUGAL_INLINE void pad_targets(PaddedBatch& batch, std::vector<at::Tensor> targets,
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

  /// Counts labels per sample: class labels that are not -100 of stacked targets [B, ...];
  /// otherwise one per sample.
  FRUGAL_INLINE static void count_rows(PaddedBatch& batch) {
    batch.counts = at::ones_like(batch.lengths);
    if (batch.target.scalar_type() != at::kLong) return;
    auto* const count = static_cast<std::int64_t*>(batch.counts.mutable_data_ptr());
    for (std::int64_t i = 0; i < batch.target.size(0); ++i) {
      count[i] = detail::count_labels_now(batch.target[i]);
    }
  }
};

}  // namespace frugal
