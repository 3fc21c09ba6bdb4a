// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/require.hpp>

#include <array>
#include <string_view>

namespace frugal::plan {

/// Bytes that training keeps for each trained parameter, apart from activations.
struct BytesPerParameter {
  double weights = 4;
  double gradients = 4;
  double optimizer = 0;  ///< state; of AdamW two FP32 moments
  double master = 0;     ///< FP32 weights next to 16-bit ones
  double copies = 0;     ///< 16-bit weights that autocast caches during a step

  constexpr double all() const { return weights + gradients + optimizer + master + copies; }
};

/// How a recipe keeps its weights. frugal's Precision keeps FP32 weights, and autocast.
enum class Keeping {
  fp32,             ///< FP32 weights and gradients
  autocast,         ///< the same, and a 16-bit copy of the weights during a step
  half_and_master,  ///< 16-bit weights and gradients, FP32 master weights: as ZeRO counts
};

/// Bytes of state for each parameter: FP32, as torch.optim keeps it.
struct OptimizerState {
  std::string_view name;
  double bytes;
};
inline constexpr std::array optimizer_states{
    OptimizerState{"AdamW", 8},    OptimizerState{"Adam", 8},
    OptimizerState{"SGD", 0},      OptimizerState{"SGD with momentum", 4},
    OptimizerState{"Adagrad", 4},  OptimizerState{"RMSprop", 4},
    OptimizerState{"AMSGrad", 12},
};

/// Throws SettingsError for an unknown optimizer, and names those that are near.
double optimizer_bytes(std::string_view name);

constexpr BytesPerParameter bytes_per_parameter(Keeping keeping, double optimizer) {
  if (keeping == Keeping::half_and_master) {
    return {.weights = 2, .gradients = 2, .optimizer = optimizer, .master = 4};
  }
  return {.optimizer = optimizer, .copies = keeping == Keeping::autocast ? 2.0 : 0.0};
}

/// What a recipe keeps, in numbers of elements and bytes.
struct MemoryInputs {
  double parameters = 0;
  double frozen = 0;   ///< of these, without gradient and optimizer state
  double buffers = 0;  ///< bytes of what is no parameter, such as BatchNorm's statistics
  BytesPerParameter per{};
  double averages = 0;     ///< FP32 copies of all weights that the recipe keeps, 1 with Average
  double activations = 0;  ///< bytes at their peak, from a dry run
};

/// Bytes by purpose.
struct MemoryEstimate {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double averages = 0;
  double activations = 0;
  double buffers = 0;

  constexpr double all() const {
    return weights + gradients + optimizer + averages + activations + buffers;
  }
  /// Weights, optimizer state, averages and buffers: what Checkpoint saves.
  constexpr double checkpoint() const { return weights_saved + optimizer + averages + buffers; }

  double weights_saved = 0;  ///< of `weights`, without copies that autocast makes again
};

constexpr MemoryEstimate estimate(MemoryInputs const& in) {
  detail::require_not_negative("parameters", in.parameters);
  detail::require_not_negative("frozen parameters", in.frozen);
  detail::require_not_negative("activations", in.activations);
  detail::require_not_negative("buffers", in.buffers);
  detail::require_not_negative("averages", in.averages);
  if (in.frozen > in.parameters) {
    detail::refuse("frozen parameters", in.frozen, "at most the number of parameters");
  }
  double const trained = in.parameters - in.frozen;
  MemoryEstimate out;
  out.weights_saved = in.parameters * in.per.weights + trained * in.per.master;
  out.weights = out.weights_saved + in.parameters * in.per.copies;
  out.gradients = trained * in.per.gradients;
  out.optimizer = trained * in.per.optimizer;
  out.averages = in.parameters * 4 * in.averages;
  out.activations = in.activations;
  out.buffers = in.buffers;
  return out;
}

}  // namespace frugal::plan

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/memory.ipp>
#endif
