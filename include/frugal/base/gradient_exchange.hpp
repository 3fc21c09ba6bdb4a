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

/// What a link between two processes carries, in the model that a message of S bytes takes
/// latency + S / bytes_per_second (the alpha-beta model).
struct LinkSpeed {
  double latency = 0;           ///< seconds until the first byte of a message is there
  double bytes_per_second = 0;  ///< of payload, in one direction
};

/// The share of an Ethernet frame that is payload of TCP: 1448 bytes of the 1514 that a shaper
/// counts, with IPv4, timestamps and an MTU of 1500.
inline constexpr double tcp_payload_share = 1448.0 / 1514;

/// A link by its data sheet. measure_link (frugal/cluster/measure_link.hpp) finds what is left of it.
constexpr LinkSpeed tcp_link(double gigabits_per_second, double latency) {
  return {.latency = latency,
          .bytes_per_second = gigabits_per_second * 1e9 / 8 * tcp_payload_share};
}

}  // namespace frugal
