// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <exception>
#include <limits>
#include <string>

#include <frugal/data/batch.hpp>
#include <frugal/error.hpp>
#include <frugal/libtorch/parameters.hpp>
#include <frugal/run/counters.hpp>

// How the loop fails: kept apart so that the loop reads from top to bottom.
namespace frugal::detail {

inline std::string position_text(Counters const& at) {
  return "epoch " + std::to_string(at.epoch) + ", step " + std::to_string(at.step) +
         ", micro-batch " + std::to_string(at.micro_batch);
}

template <class B>
std::string batch_text(B const& batch) {
  if constexpr (requires {
                  shape_text(batch.data);
                  shape_text(batch.target);
                }) {
    return "data " + shape_text(batch.data) + ", target " + shape_text(batch.target);
  } else if constexpr (ShowsTensors<B>) {
    std::string text;
    batch_tensors(batch, [&](at::Tensor const& tensor) {
      text += (text.empty() ? "" : ", ") + shape_text(tensor);
    });
    return text.empty() ? "no tensor" : text;
  } else {
    return "of " + std::to_string(batch_samples(batch)) + " samples";
  }
}

inline void require_parameters(Parameters const& parameters) {
  for (at::Tensor const& tensor : parameters.tensors) {
    if (tensor.requires_grad()) return;
  }
  throw ModuleError({.what = "the module has no parameter to train",
                     .where = "fit",
                     .why = parameters.size() == 0 ? "it registered none"
                                                   : "requires_grad is false on all of them",
                     .fix = "Register submodules with register_module, or unfreeze a "
                            "parameter with set_requires_grad(true)."});
}

/// A policy of on::module replaces parts of the module: the fit, and its caller, hold the whole.
inline void require_same_module(torch::nn::Module const& now, torch::nn::Module const& before) {
  if (&now == &before) return;
  throw ModuleError({.what = "a policy has put another module in the trainer's place",
                     .where = "on_module",
                     .why = "the fit trains the module that it was given, whoever else holds it",
                     .fix = "Replace parts of it, with replace_module."});
}

[[noreturn]] inline void refuse_empty_source(std::string const& which, std::uint64_t epoch) {
  throw EmptySourceError({.what = "the " + which + " source has no batch",
                          .where = "epoch " + std::to_string(epoch),
                          .why = "it ended before its first one",
                          .fix = "Look at its size, and at drop_last with a batch larger than "
                                 "the data."});
}

/// Turns LibTorch's error of a forward pass into one that says which batch of which shapes did
/// it. The original is nested in it.
template <class B>
[[noreturn]] void refuse_forward(c10::Error const& error, B const& batch, Counters const& at) {
  std::string const why = error.what_without_backtrace();
  Fault fault{.what = "the forward pass failed on a batch with " + batch_text(batch),
              .where = position_text(at),
              .why = why.substr(0, why.find('\n')),
              .fix = ""};
  bool const shapes =
      why.find("shape") != std::string::npos || why.find("size") != std::string::npos ||
      why.find("dimension") != std::string::npos || why.find("channels") != std::string::npos;
  if (shapes) {
    fault.fix = "Make the module's first layer fit the data, or reshape the data.";
    std::throw_with_nested(ShapeError(std::move(fault)));
  }
  fault.fix = "See LibTorch's message; the module is as it was after the last step.";
  std::throw_with_nested(ModuleError(std::move(fault)));
}

/// Runs a part of a step; LibTorch's error in it says which step it was. The original is nested.
template <class F>
void guarded(char const* part, Counters const& at, F&& body) {
  try {
    body();
  } catch (c10::Error const& error) {
    std::string const why = error.what_without_backtrace();
    std::throw_with_nested(
        ModuleError({.what = std::string(part) + " failed",
                     .where = position_text(at),
                     .why = why.substr(0, why.find('\n')),
                     .fix = "See LibTorch's message; the step was not counted, and what the run "
                            "saved before it is whole."}));
  }
}

[[noreturn]] inline void refuse_reevaluation() {
  throw SettingsError({.what = "the optimizer evaluates a window twice, and the loss is scaled",
                       .where = "Optimize<Any>",
                       .why =
                           "Precision<FP16> scales what each window's backward pass starts from, "
                           "and a line search compares losses of several",
                       .fix = "Use Precision<BF16> or Precision<FP32> with LBFGS."});
}

/// Such a window has no mean loss, and no gradient that an update could be made of.
inline void require_weight(double weight, Counters const& at, std::uint64_t position) {
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

/// In a process whose own losses are good. Where the bad one is in the data, the other one knows.
[[noreturn]] inline void refuse_bad_loss_elsewhere(Counters const& at) {
  throw NonFiniteLossError({.what = "the loss is bad in another process",
                            .where = position_text(at),
                            .why = "processes that train together go on together, or not at all",
                            .fix = "Look at that process's own message."},
                           {at.epoch, LossError::Window::elsewhere, at.step},
                           std::numeric_limits<double>::quiet_NaN());
}

/// A loss is one number. One of shape [1] is taken for it.
inline void require_scalar(at::Tensor& loss, Counters const& at) {
  if (!loss.defined() || loss.numel() != 1) {
    throw ShapeError({.what = "the objective returned no single number but " + shape_text(loss),
                      .where = position_text(at),
                      .why = "a loss has shape []",
                      .fix = "Take its mean() or sum() in the objective."});
  }
  if (loss.dim() != 0) loss = loss.reshape({});
}

inline void require_graph(at::Tensor const& loss, Counters const& at) {
  if (loss.requires_grad()) return;
  throw ModuleError({.what = "the loss depends on no parameter",
                     .where = position_text(at),
                     .why = "it has no gradient function",
                     .fix = "Compute it from the module's output, without detach() or a "
                            "NoGradGuard."});
}

}  // namespace frugal::detail
