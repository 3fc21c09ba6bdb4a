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

#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/labels.hpp>
#include <frugal/data/collate.hpp>
#include <frugal/data/named_tensors.hpp>
#include <frugal/data/padded.hpp>
#include <frugal/data/sample_names.hpp>

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
  void add_fields(PaddedBatch& batch, std::vector<NamedTensors> of_samples,
                  std::vector<at::Tensor> const& data, detail::SampleNames const& name) const;

  static void require_length(std::string const& field, at::Tensor const& row,
                             at::Tensor const& data, std::string const& sample);
  [[noreturn]] static void refuse_missing(std::string const& field, std::string const& sample);

  /// Whether targets have the lengths of their data. Those of one shape need not.
  static bool has_positions(std::vector<at::Tensor> const& data,
                            std::vector<at::Tensor> const& targets,
                            detail::SampleNames const& name);

  void pad_targets(PaddedBatch& batch, std::vector<at::Tensor> targets,
                   detail::SampleNames const& name) const;

  /// Counts labels per sample: class labels that are not -100 of stacked targets [B, ...];
  /// otherwise one per sample.
  static void count_rows(PaddedBatch& batch);
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/pad.ipp>
#endif
