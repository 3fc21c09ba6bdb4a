// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/failure.hpp>

#include <frugal/inline.hpp>

#include <limits>

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

FRUGAL_INLINE void require_graph(at::Tensor const& loss, Counters const& at) {
  if (loss.requires_grad()) return;
  throw ModuleError(
      {.what = "the loss depends on no parameter",
       .where = position_text(at),
       .why = "the tensor has no gradient function",
       .fix = "Compute the loss from the module's output, without detach() or a NoGradGuard."});
}

}  // namespace frugal::detail
