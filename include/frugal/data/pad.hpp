// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, T positions of the longest (or more), ... whatever one position
// has.
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/labels.hpp>
#include <frugal/data/collate.hpp>
#include <frugal/data/fields_batch.hpp>

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

namespace frugal::detail {

/// The sum of an int64 tensor on the host: a loop, so that a step dispatches no operator for it.
std::int64_t host_sum(at::Tensor const& numbers);

/// A part of a batch whose `lengths` and `counts` [B] stay on the host, so that its each_tensor
/// does not name them: the part has that part of both.
template <class B>
B narrow_with_counts(B const& batch, std::int64_t begin, std::int64_t count) {
  B part = batch_defaults<B>::narrow(batch, begin, count);
  part.lengths = batch.lengths.narrow(0, begin, count);
  part.counts = batch.counts.narrow(0, begin, count);
  return part;
}

}  // namespace frugal::detail

namespace frugal {

/// Samples of different lengths in one batch; made by `Pad`.
///
/// The mask is on the data's device. Lengths and counts stay on the host, so that reading them does
/// not wait for a device.
struct PaddedBatch {
  at::Tensor data{};     ///< [B, T, ...]
  at::Tensor target{};   ///< [B, T, ...] padded as the data are, or [B, ...]; may be undefined
  at::Tensor mask{};     ///< [B, T] bool: true where the data are a sample's own
  at::Tensor lengths{};  ///< [B] int64 on the host: positions of each sample
  at::Tensor counts{};   ///< [B] int64 on the host: what of each sample counts in a loss
  bool target_padded = false;  ///< whether the target has positions, too
  NamedTensors fields{};       ///< [B, T, ...] padded as the data are (Pad::fields), or [B, ...]

  /// DataError if there is none of that name; says which there are.
  at::Tensor const& field(std::string const& name) const { return detail::field_in(fields, name); }

  /// The weight of a loss: labels that are not -100, or the positions if there are no labels.
  std::int64_t counted() const { return detail::host_sum(counts); }
  /// Positions that are not padding.
  std::int64_t positions() const { return detail::host_sum(lengths); }

  /// The host's tensors are not among them: they do not move.
  void each_tensor(auto&& f) { f(data, target, mask, fields); }
};

/// Tokens are positions that are not padding; a part of it has that part of the host's tensors.
template <>
struct batch_traits<PaddedBatch> {
  static std::int64_t tokens(PaddedBatch const& batch) { return batch.positions(); }
  static PaddedBatch narrow(PaddedBatch const& batch, std::int64_t begin, std::int64_t count) {
    return detail::narrow_with_counts(batch, begin, count);
  }
};

/// Rows of different lengths in one tensor.
struct PaddedRows {
  at::Tensor rows;     ///< [B, T, ...]
  at::Tensor mask;     ///< [B, T] bool, on the rows' device
  at::Tensor lengths;  ///< [B] int64 on the host
};

/// Pads rows [T_i, ...] with a value to the longest of them, or on to a multiple of a number.
/// Rows are of one type and differ in their first dimension alone (see Pad, which says what does
/// not fit). Throws SettingsError for a multiple below 1, EmptySourceError without rows.
PaddedRows pad(std::vector<at::Tensor> const& rows, double value = 0, std::int64_t multiple = 1);

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
