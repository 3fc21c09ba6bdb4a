// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, T positions of the output, S labels of the longest sample.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>

#include <frugal/core/run/forward_batch.hpp>
#include <frugal/core/run/loss.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>

namespace frugal {

namespace detail {

/// What a batch says of its lengths. Undefined tensors, and 0 positions, where it says nothing.
struct CtcLengths {
  at::Tensor of_output{};      ///< [B], a field of the batch: positions of the output
  at::Tensor of_data{};        ///< [B] on the host: positions of the data
  std::int64_t positions = 0;  ///< of the padded data
  at::Tensor labels{};         ///< [B] on the host: labels of each sample
};

template <class B>
CtcLengths ctc_lengths(B const& batch) {
  CtcLengths found;
  if constexpr (requires { batch.fields.find("input_lengths")->second.dim(); }) {
    auto const at = batch.fields.find("input_lengths");
    if (at != batch.fields.end()) found.of_output = at->second;
  }
  if constexpr (requires { batch.lengths.dim(), batch.counts.dim(), batch.data.dim(); }) {
    found.of_data = batch.lengths;
    found.positions = batch.data.size(1);
    found.labels = batch.counts;
  }
  return found;
}

}  // namespace detail

/// Connectionist temporal classification, torch.nn.CTCLoss with reduction="mean": the loss of a sample over its
/// number of labels, and the mean over the samples, weighted by their number, so that micro-batches add up to one
/// batch.
///
/// Logits [B, C, T], of which the softmax is taken here, and labels [B, S] of an integer type: class numbers without
/// `blank`, filled with -100. Labels of -100 are left out wherever they stand.
///
/// Positions of each sample's output: the batch's field "input_lengths" [B], if it has one; those of a PaddedBatch's
/// data over `subsampling`, rounded up; or else all T. On a device each loss waits: LibTorch copies the lengths there.
/// Labels of a PaddedBatch are counted on the host; those of other batches on a device, and a field there, cost one
/// wait more each.
///
/// Logits of 16 bits are widened. LabelError for a label that is `blank` or no class; on a device the loss is NaN
/// then. ShapeError, with both numbers, where shapes and lengths do not fit. The gradient on CUDA is not deterministic.
///
/// Source  Graves et al., "Connectionist temporal classification" (2006).
struct Ctc {
  std::int64_t blank = 0;
  /// Sets infinite losses, of samples with fewer positions than their labels need, and their gradients to 0. Otherwise
  /// such a sample ends a fit with NonFiniteLossError.
  bool zero_infinity = false;
  std::int64_t subsampling = 1;  ///< positions of a PaddedBatch's data for one of the output

  template <class Module, class B = Batch>
    requires HasData<B> && detail::TensorTarget<B>
  Loss operator()(Module& module, B const& batch) const {
    at::Tensor output = forward_batch(module, batch);
    at::Tensor value = of(output, batch_target(batch), detail::ctc_lengths(batch));
    return {.value = std::move(value),
            .weight = static_cast<double>(output.size(0)),
            .output = std::move(output)};
  }

 private:
  at::Tensor of(at::Tensor const& logits_BCT, at::Tensor const& target_BS,
                detail::CtcLengths const& lengths) const;
  at::Tensor positions(at::Tensor const& logits_BCT, detail::CtcLengths const& lengths) const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/losses/ctc.ipp>
#endif
