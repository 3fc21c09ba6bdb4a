// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/losses/ctc.hpp>

#include <frugal/core/source/labels.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <limits>
#include <string>
#include <vector>

namespace frugal::detail {

/// [B] numbers on the host.
FRUGAL_INLINE std::vector<std::int64_t> ctc_numbers(at::Tensor const& numbers) {
  at::Tensor const host = numbers.to(at::kCPU, at::kLong).contiguous();
  auto const* const first = host.const_data_ptr<std::int64_t>();
  return {first, first + host.numel()};
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE at::Tensor Ctc::positions(at::Tensor const& logits_BCT,
                                        detail::CtcLengths const& lengths) const {
  std::int64_t const samples = logits_BCT.size(0), length = logits_BCT.size(2);
  auto const refuse = [&](std::string why, std::string fix) {
    throw ShapeError({.what = "the lengths do not fit the module's output",
                      .where = "Ctc",
                      .why = "logits are " + detail::shape_text(logits_BCT) + ", " + std::move(why),
                      .fix = std::move(fix)});
  };
  at::Tensor found = at::full({samples}, length, at::kLong);
  if (lengths.of_output.defined()) {
    found = lengths.of_output.to(at::kCPU, at::kLong);
    if (found.dim() != 1 || found.size(0) != samples) {
      refuse("the field input_lengths is " + detail::shape_text(lengths.of_output),
             "Give a number of positions for each sample, [B].");
    }
  } else if (lengths.of_data.defined()) {
    if (subsampling < 1) {
      throw SettingsError({.what = "subsampling is out of range",
                           .where = "Ctc",
                           .why = "it is " + std::to_string(subsampling),
                           .fix = "Set it to 1 or more."});
    }
    std::int64_t const fewer = (lengths.positions + subsampling - 1) / subsampling;
    if (fewer != length) {
      refuse("the data have " + std::to_string(lengths.positions) +
                 " positions, and with subsampling = " + std::to_string(subsampling) +
                 " the output would have " + std::to_string(fewer),
             "Set subsampling to the module's stride, or give the batch a field input_lengths with "
             "the positions of each sample's output.");
    }
    found = lengths.of_data.add(subsampling - 1).div(subsampling, "floor");
  }
  if (samples != 0 &&
      (found.max().item<std::int64_t>() > length || found.min().item<std::int64_t>() < 0)) {
    refuse("lengths are from " + std::to_string(found.min().item<std::int64_t>()) + " to " +
               std::to_string(found.max().item<std::int64_t>()),
           "A length is from 0 to the positions of the output.");
  }
  return found;
}

FRUGAL_INLINE at::Tensor Ctc::of(at::Tensor const& logits_BCT, at::Tensor const& target_BS,
                                 detail::CtcLengths const& lengths) const {
  bool const fits = logits_BCT.dim() == 3 && target_BS.dim() == 2 &&
                    logits_BCT.size(0) == target_BS.size(0) && !target_BS.is_floating_point() &&
                    logits_BCT.is_floating_point();
  if (!fits) {
    throw ShapeError({.what = "the module's output does not fit the labels",
                      .where = "Ctc",
                      .why = "logits are " + detail::shape_text(logits_BCT) + ", labels are " +
                             detail::shape_text(target_BS),
                      .fix = "Return logits [B, C, T], and give labels [B, S] of an integer type, "
                             "filled with -100."});
  }
  std::int64_t const classes = logits_BCT.size(1);
  if (blank < 0 || blank >= classes) {
    throw SettingsError({.what = "blank is no class",
                         .where = "Ctc",
                         .why = "it is " + std::to_string(blank) + ", and the output has " +
                                std::to_string(classes) + " classes",
                         .fix = "Set it to the class that stands for no label."});
  }
  at::Tensor const target = target_BS.to(at::kLong);
  at::Tensor const counts = target.ne(ignored_label);
  at::Tensor const wrong = counts.logical_and(
      target.lt(0).logical_or_(target.ge(classes)).logical_or_(target.eq(blank)));
  if (wrong.is_cpu() && detail::count_true_now(wrong) != 0) {
    throw LabelError({.what = std::to_string(detail::count_true_now(wrong)) +
                              " labels are no class, or the blank",
                      .where = "Ctc",
                      .why = "labels are from 0 to " + std::to_string(classes - 1) + " without " +
                             std::to_string(blank) + ", and -100 is padding",
                      .fix = "Check the labels, and the number of classes of the last layer."});
  }
  at::Tensor const positions_B = positions(logits_BCT, lengths);
  // The batch's own count is that of int64 labels.
  bool const counted =
      lengths.labels.defined() && !target_BS.is_cpu() && target_BS.scalar_type() == at::kLong;
  at::Tensor const labels_B = counted ? lengths.labels : counts.sum(1);
  // Labels that count move to the front, in their order; what no class is becomes one, and is never read or poisons
  // the loss below: an index beyond the classes would read other memory.
  at::Tensor const order = counts.logical_not().to(at::kByte).argsort(/*stable=*/true, 1);
  at::Tensor const labels_BS =
      target.masked_fill(counts.logical_not().logical_or(wrong), blank).gather(1, order);

  at::Tensor const log_p_TBC = detail::at_least_float(logits_BCT).log_softmax(1).permute({2, 0, 1});
  at::Tensor const value =
      at::ctc_loss(log_p_TBC, labels_BS, detail::ctc_numbers(positions_B),
                   detail::ctc_numbers(labels_B), blank, at::Reduction::Mean, zero_infinity);
  if (wrong.is_cpu()) return value;
  return value.masked_fill(wrong.any(), at::Scalar(std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace frugal
