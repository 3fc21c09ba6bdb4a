// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace frugal {

/// How processes put their gradients together.
enum class GradientSum {
  exact,                ///< Replicate<Exact>: after the backward pass
  ring,                 ///< Replicate<Ring>: during the last micro-batch's backward pass
  ring_after_backward,  ///< Replicate<Ring>{.overlaps = false}
  local_steps,          ///< Replicate<LocalSteps<H>>: weights, once in H steps
};

/// What a recipe exchanges in a step, as far as plan_ranks wants to know it.
struct GradientExchange {
  GradientSum sum = GradientSum::ring;
  bool bf16 = false;            ///< Wire<BF16>
  bool shards_states = false;   ///< Shard<States>
  bool scatters = false;        ///< Shard<States, Grads>, with Params or without
  int local_steps = 1;          ///< H of LocalSteps<H>
  int power_sgd = 0;            ///< R of Wire<PowerSGD<R>>; 0: without
  double compression_rate = 2;  ///< its PowerSGDSettings::min_compression_rate
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
};

}  // namespace frugal
