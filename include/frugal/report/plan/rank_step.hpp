// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/gradient_exchange.hpp>
#include <frugal/report/plan/all_reduce.hpp>
#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/prices.hpp>
#include <frugal/report/plan/require.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace frugal::plan {

using frugal::GradientSum;

/// A run that several processes (ranks) share: strong scaling, as the micro-batches of a step are
/// divided by their number.
struct RankInputs {
  Seconds micro_batch{};     ///< forward and backward of one micro-batch, measured in one process
  double micro_batches = 1;  ///< of a step in all processes together: Accumulate<N>
  Seconds update{};          ///< of a step: clipping and the optimizer, which every process does
  Gigabytes gradients{};     ///< bytes of the gradients, as they are computed
  LinkSpeed link{};          ///< the slowest between two processes: measure_link, tcp_link
  GradientSum sum = GradientSum::ring;
  bool bf16 = false;           ///< Wire<BF16>
  bool shards_states = false;  ///< Shard<States>
  bool power_sgd = false;      ///< Wire<PowerSGD<R>>
  Gigabytes low_rank{};        ///< bytes of the gradients with PowerSGD<R>; 0: not known
  double local_steps = 64;     ///< H, with GradientSum::local_steps
  Gigabytes bucket = gigabytes(25 << 20);  ///< Replicate<Ring>::bucket_bytes
  /// The last bucket, whose sum begins when the backward pass has ended; at most `bucket` if it is
  /// left out.
  std::optional<Gigabytes> last_bucket{};
  double steps = 1;              ///< of the run
  std::optional<Price> price{};  ///< of a process, or of a machine with so many of them
  double runs = 1;               ///< to do on the same processes, such as those of a search
  double most = 64;              ///< ranks of the last row
};

/// A step of so many ranks.
struct RankStep {
  Seconds compute{};        ///< of the micro-batches of one rank, and the update
  Seconds communication{};  ///< of all exchanges of the step
  Seconds exposed{};        ///< that part of it for which the step waits
  double efficiency = 1;    ///< time of one rank / (ranks x time of a step)

  constexpr Seconds step() const { return compute + exposed; }
};

/// Whether gradients are summed by Replicate<Ring>, which alone takes a Wire.
constexpr bool sums_by_ring(RankInputs const& in) {
  return in.sum == GradientSum::ring || in.sum == GradientSum::ring_after_backward;
}

/// Whether Replicate divides a step of so many micro-batches by so many ranks.
inline bool can_share(RankInputs const& in, double ranks) {
  double const each = in.micro_batches / ranks;
  auto const count = static_cast<long long>(each);
  if (static_cast<double>(count) != each || count < 1) return false;
  return in.sum != GradientSum::exact || ranks == 1 || (count & (count - 1)) == 0;
}

/// Throws SettingsError for what is negative, not finite or, where it is a divisor, 0.
inline RankInputs const& checked(RankInputs const& in) {
  detail::require_positive("micro-batch", in.micro_batch.value());
  detail::require_count("micro-batches", in.micro_batches);
  detail::require_not_negative("update", in.update.value());
  detail::require_not_negative("gradients", in.gradients.value());
  detail::require_not_negative("latency", in.link.latency);
  detail::require_positive("bytes per second", in.link.bytes_per_second);
  detail::require_positive("bucket", in.bucket.value());
  detail::require_positive("steps", in.steps);
  detail::require_count("runs", in.runs);
  detail::require_count("most", in.most);
  if (in.most > 65536) detail::refuse("most", in.most, "at most 65536");
  if (in.price) detail::require_not_negative("price", in.price->per_device().value());
  if (in.last_bucket) {
    detail::require_not_negative("last bucket", in.last_bucket->value());
    if (*in.last_bucket > in.gradients) {
      detail::refuse("last bucket", in.last_bucket->value(), "at most the gradients");
    }
  }
  detail::require_not_negative("low rank", in.low_rank.value());
  detail::require_count("local steps", in.local_steps);
  if (!sums_by_ring(in) && (in.bf16 || in.power_sgd)) {
    detail::refuse(in.bf16 ? "bf16" : "power_sgd", 1, "0: only Replicate<Ring> takes a Wire");
  }
  if (in.bf16 && in.power_sgd) {
    detail::refuse("bf16", 1, "0 with power_sgd: there is one Wire");
  }
  if (in.power_sgd && !(in.low_rank > Gigabytes(0))) {
    detail::refuse("low rank", in.low_rank.value(), "above 0 with power_sgd");
  }
  if (in.shards_states && in.sum == GradientSum::local_steps) {
    detail::refuse("shards_states", 1, "0: Replicate<LocalSteps<H>> takes no Shard");
  }
  return in;
}

/// The time of a step of `ranks` processes:
///
///   compute        N / W x micro-batch + update
///   all-reduce     2 (W - 1) / W x bytes / rate + 2 (W - 1) x latency for each bucket
///   exposed        without overlap all of it; with overlap what the backward pass of the last
///                  micro-batch does not hide (backward_share), and at least the last bucket
///   PowerSGD       two all-reduces of the factors, after the backward pass
///   local steps    an all-reduce of the weights once in H steps; a message of the losses in each
///
/// Left out: congestion, jitter between ranks, the processor's time for sending and for factors, and
/// GradientSum::exact with several processes that share a network card, which its all-to-all passes
/// once for each of them.
///
/// Errors  SettingsError for an input out of range, and for ranks that cannot share the step.
/// Source  Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
///         workstations" (2009); Thakur et al., "Optimization of collective communication operations
///         in MPICH" (2005), for the latency.
inline RankStep estimate(RankInputs const& in, double ranks) {
  detail::require_count("ranks", ranks);
  if (!can_share(checked(in), ranks)) {
    detail::refuse("ranks", ranks,
                   in.sum == GradientSum::exact ? "the micro-batches / 1, 2, 4, 8 and so on"
                                                : "a divisor of the micro-batches");
  }
  Seconds const latency((ranks - 1) * in.link.latency);  // of a half: scatter, or gather
  auto const half = [&](Gigabytes bytes) {
    return ring_all_reduce(ranks, bytes, GigabytesPerSecond(in.link.bytes_per_second / 1e9)) / 2;
  };
  Gigabytes const wire = in.gradients * (in.bf16 ? 0.5 : 1);
  RankStep out;
  out.compute =
      in.micro_batch * (in.micro_batches / ranks) + in.update / (in.shards_states ? ranks : 1);
  Seconds gather{};  // of the weights, after the update
  if (in.sum == GradientSum::exact) {
    // An all-to-all, the losses, and a gather of the sums; with Shard of the weights.
    out.communication = 2 * half(wire) + 3 * latency;
  } else if (in.sum == GradientSum::local_steps) {
    out.communication = (2 * half(in.gradients) + 2 * latency) / in.local_steps + latency;
  } else if (in.power_sgd) {
    out.communication = 2 * half(in.low_rank) + 2 * 2 * latency;
    if (in.shards_states) gather = half(in.gradients) + latency;
  } else {
    Gigabytes const first = std::min(gigabytes(1 << 20), in.bucket);
    double const others = std::ceil(std::max(0.0, (in.gradients - first) / in.bucket));
    out.communication = 2 * half(wire) + 2 * latency * (1 + others);
    if (in.shards_states) gather = half(in.gradients) + latency;
  }
  out.exposed = out.communication;
  if (in.sum == GradientSum::ring && !in.power_sgd) {
    Gigabytes const last = in.last_bucket.value_or(std::min(in.gradients, in.bucket));
    out.exposed = std::max(out.communication - backward_share * in.micro_batch,
                           2 * half(last * (in.bf16 ? 0.5 : 1)) + 2 * latency);
  }
  out.communication += gather;
  out.exposed += gather;
  out.efficiency = (in.micro_batch * in.micro_batches + in.update) / (ranks * out.step());
  return out;
}

}  // namespace frugal::plan
