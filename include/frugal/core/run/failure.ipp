// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/failure.hpp>

#include <ATen/ATen.h>
#include <c10/core/ScalarType.h>

#include <cstdlib>
#include <exception>
#include <limits>
#include <utility>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::string failure_text(std::exception const& error) {
  std::string const text = error.what();
  return text.substr(0, text.find('\n'));
}

FRUGAL_INLINE std::string position_text(Counters const& at) {
  return "epoch " + std::to_string(at.epoch) + ", step " + std::to_string(at.step) +
         ", micro-batch " + std::to_string(at.micro_batch);
}

FRUGAL_INLINE void require_parameters(Parameters const& parameters) {
  for (at::Tensor const& tensor : parameters.tensors) {
    if (tensor.requires_grad()) return;
  }
  throw ModuleError({.what = "the module has no parameter to train",
                     .where = "fit",
                     .why = parameters.size() == 0 ? "it registered none, or all are fixed"
                                                   : "requires_grad is false on all of them",
                     .fix = "Register submodules with register_module, or unfreeze a "
                            "parameter with set_requires_grad(true)."});
}

FRUGAL_INLINE void refuse_empty_source(std::string const& which, std::uint64_t epoch) {
  throw EmptySourceError(
      {.what = "the " + which + " source has no batch",
       .where = "epoch " + std::to_string(epoch),
       .why = "it ended before its first batch",
       .fix = "Check its size, and whether drop_last leaves out the only batch."});
}

FRUGAL_INLINE void refuse_part(char const* part, Counters const& at, c10::Error const& error) {
  std::string const full = error.what_without_backtrace();
  Fault fault{.what = std::string(part) + " failed",
              .where = position_text(at),
              .why = full.substr(0, full.find('\n')),
              .fix = fix_of_dtypes(full)};
  if (!fault.fix.empty()) std::throw_with_nested(DtypeError(std::move(fault)));
  fault.fix =
      "See LibTorch's message. The step was not counted; the checkpoints before it are "
      "whole.";
  std::throw_with_nested(ModuleError(std::move(fault)));
}

FRUGAL_INLINE void refuse_reevaluation() {
  throw SettingsError(
      {.what = "the optimizer evaluates a window twice, and a policy may skip the window",
       .where = "Optimize<Any>",
       .why = "Precision<FP16> changes the loss scale between windows, and a line search compares "
              "their losses; it may probe weights whose gradients are not finite, which "
              "SkipNonFinite would count",
       .fix = "With LBFGS use Precision<BF16> or Precision<FP32>, without SkipNonFinite."});
}

FRUGAL_INLINE void require_no_scalars(Loss const& loss, Counters const& at) {
  if (loss.scalars.empty()) return;
  throw SettingsError({.what = "the loss has scalars, and processes share the window",
                       .where = position_text(at),
                       .why = "each would log the mean of its own micro-batches as that of all",
                       .fix = "Leave Loss::scalars empty in this recipe."});
}

FRUGAL_INLINE void require_weight(double weight, Counters const& at, std::uint64_t position) {
  if (weight != 0) [[likely]]
    return;
  throw ZeroWeightError(
      {.what = "the weights of a window's losses sum to zero",
       .where = "epoch " + std::to_string(at.epoch) + ", step " + std::to_string(at.step),
       .why = "none of its labels counts: all are -100, or masked",
       .fix = "Look at the samples of that window, make batches larger, or "
              "accumulate more of them."},
      {at.epoch, position, at.step}, 0.0);
}

FRUGAL_INLINE void refuse_bad_loss_elsewhere(Counters const& at) {
  throw NonFiniteLossError({.what = "the loss is bad in another process",
                            .where = position_text(at),
                            .why = "all processes of a run stop together",
                            .fix = "Read the message of that process."},
                           {at.epoch, LossError::Window::elsewhere, at.step},
                           std::numeric_limits<double>::quiet_NaN());
}

FRUGAL_INLINE void require_scalar(at::Tensor& loss, Counters const& at) {
  if (!loss.defined() || loss.numel() != 1) {
    throw ShapeError(
        {.what = "the objective must return one number, and returned " + shape_text(loss),
         .where = position_text(at),
         .why = "a loss has shape []",
         .fix = "Return its mean() or sum()."});
  }
  if (loss.dim() != 0) loss = loss.reshape({});
}

FRUGAL_INLINE void require_graph(Loss const& loss, Counters const& at) {
  if (loss.value.requires_grad() || loss.gradients != nullptr) return;
  throw ModuleError(
      {.what = "the loss depends on no parameter",
       .where = position_text(at),
       .why = "the tensor has no gradient function",
       .fix = "Compute the loss from the module's output, without detach() or a NoGradGuard."});
}

FRUGAL_INLINE bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (std::string_view const part : parts) {
    if (text.find(part) != std::string_view::npos) return true;
  }
  return false;
}

FRUGAL_INLINE std::optional<std::int64_t> label_out_of_bounds(std::string const& why) {
  constexpr std::string_view before = "Target ";
  std::size_t const at = why.find(before);
  if (at == std::string::npos || why.find(" is out of bounds", at) == std::string::npos) return {};
  char* end = nullptr;
  char const* const digits = why.c_str() + at + before.size();
  std::int64_t const label = std::strtoll(digits, &end, 10);
  return end == digits ? std::nullopt : std::optional(label);
}

FRUGAL_INLINE std::string fix_of_dtypes(std::string_view why) {
  // As LibTorch 2.11 and 2.15 say it.
  if (has_any(why, {"expected scalar type Long", "expected target dtype to be Long"})) {
    return "Give class labels as int64, such as target.to(torch::kLong). For float targets, use "
           "MeanSquaredError, or class probabilities of the logits' shape.";
  }
  if (has_any(why, {"scalar types: Long, Int"})) {
    return "Give indices as int64, such as data.to(torch::kLong).";
  }
  if (has_any(why, {"Found dtype", "can't be cast to the desired output type"})) {
    return "Give the target the dtype of the module's output, such as target.to(torch::kFloat).";
  }
  if (has_any(why, {"same dtype", "same datatype", "Input type (", "not implemented for '"})) {
    return "Convert the data where it is loaded, such as data.to(torch::kFloat), for images in "
           "bytes data.to(torch::kFloat).div(255); or convert the module, such as "
           "module->to(torch::kDouble).";
  }
  return {};
}

FRUGAL_INLINE std::string dtype_text(Parameters const& parameters) {
  for (at::Tensor const& each : parameters.tensors) {
    if (!each.is_floating_point()) continue;
    return std::string("the module's parameters are ") + c10::toString(each.scalar_type());
  }
  return "the module has no parameter of floating point";
}

FRUGAL_INLINE std::string classes_text(Parameters const& parameters, std::int64_t label) {
  std::string const counted = "labels count from 0 to the number of classes - 1";
  if (parameters.size() == 0 || parameters.tensors.back().dim() == 0) return counted;
  std::int64_t const rows = parameters.tensors.back().size(0);
  if (label >= 0 && label < rows) return counted;
  return counted + ", and the module's last parameter, '" + parameters.names.back() + "', has " +
         std::to_string(rows) + " rows, which are " + std::to_string(rows) +
         " classes if that is the output layer";
}

FRUGAL_INLINE void throw_forward_failure(std::string const& full, std::string const& batch,
                                         std::string where, Parameters const& parameters) {
  std::string const why = full.substr(0, full.find('\n'));
  Fault fault{.what = "the forward pass failed on a batch with " + batch,
              .where = std::move(where),
              .why = why,
              .fix = ""};
  if (auto const label = label_out_of_bounds(why)) {
    fault.what = "label " + std::to_string(*label) + " is out of range in a batch with " + batch;
    fault.why = classes_text(parameters, *label);
    fault.fix = *label < 0 ? std::string(
                                 "Correct the labels. Of negative ones, -100 alone may be "
                                 "used, for labels that do not count.")
                           : "Give the last layer out_features of " + std::to_string(*label + 1) +
                                 " or more, or correct the labels.";
    std::throw_with_nested(LabelError(std::move(fault)));
  }
  fault.fix = fix_of_dtypes(why);
  if (!fault.fix.empty()) {
    fault.why += "; " + dtype_text(parameters);
    std::throw_with_nested(DtypeError(std::move(fault)));
  }
  if (has_any(why, {"shape", "size", "dimension", "channels"})) {
    fault.fix = "Make the module's first layer fit the data, or reshape the data.";
    std::throw_with_nested(ShapeError(std::move(fault)));
  }
  fault.fix = "See LibTorch's message. The module has the weights of the last step.";
  std::throw_with_nested(ModuleError(std::move(fault)));
}

}  // namespace frugal::detail
