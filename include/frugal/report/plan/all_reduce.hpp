// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/require.hpp>

#include <algorithm>
#include <limits>
#include <string_view>

namespace frugal::plan {

/// Time of a ring all-reduce: each of n devices sends and receives 2(n-1)/n of the bytes (Patarasuk
/// and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009). Latency
/// is left out. One device communicates nothing.
constexpr Seconds ring_all_reduce(double devices, Gigabytes bytes, GigabytesPerSecond bandwidth) {
  detail::require_count("devices", devices);
  detail::require_not_negative("bytes", bytes.value());
  detail::require_positive("bandwidth", bandwidth.value());
  return 2 * (devices - 1) / devices * (bytes / bandwidth);
}

enum class GradientFormat { FP32, BF16, FP16 };

constexpr double bytes_of(GradientFormat format) { return format == GradientFormat::FP32 ? 4 : 2; }

/// The share of forward and backward that the backward pass takes, in which gradients can travel
/// while others are computed: it has about two matrix products for each one of the forward pass.
inline constexpr double backward_share = 2.0 / 3;

/// Data-parallel training: every device computes its samples, then all average their gradients.
struct DataParallel {
  double devices = 1;
  double parameters = 0;
  GradientFormat gradients = GradientFormat::FP32;
  GigabytesPerSecond bandwidth{};  ///< of the slowest link, in one direction
  double samples_per_second = 0;   ///< of one device alone
  double samples = 1;  ///< of one device in an optimizer step, all micro-batches together
  /// The share of a step's computation during which gradients can travel: 0 without overlap,
  /// about backward_share with it.
  double overlap = 0;
};

/// 80 % and above, 60 % and above, and below.
enum class Scaling { good, fair, poor };
constexpr Scaling scaling_of(double efficiency) {
  return efficiency >= 0.8 ? Scaling::good : efficiency >= 0.6 ? Scaling::fair : Scaling::poor;
}

struct ScalingEstimate {
  Seconds compute{};            ///< of one step
  Seconds communication{};      ///< of one all-reduce
  Seconds exposed{};            ///< communication that nothing hides
  double efficiency = 1;        ///< compute / (compute + exposed)
  double speedup = 1;           ///< over one device: devices x efficiency
  double samples_for_good = 0;  ///< of one device in a step, for 80 %; 0 if any number reaches it

  constexpr Scaling scaling() const { return scaling_of(efficiency); }
};

constexpr ScalingEstimate estimate(DataParallel const& job) {
  detail::require_positive("parameters", job.parameters);
  detail::require_positive("samples per second", job.samples_per_second);
  detail::require_positive("samples per step", job.samples);
  detail::require_fraction("overlap", job.overlap);
  Gigabytes const bytes = gigabytes(job.parameters * bytes_of(job.gradients));
  ScalingEstimate out;
  out.compute = Seconds(job.samples / job.samples_per_second);
  out.communication = ring_all_reduce(job.devices, bytes, job.bandwidth);
  out.exposed = std::max(Seconds(0), out.communication - job.overlap * out.compute);
  out.efficiency = out.compute / (out.compute + out.exposed);
  out.speedup = job.devices * out.efficiency;
  // compute / (compute + communication - overlap x compute) = 0.8
  out.samples_for_good =
      (out.communication / (0.25 + job.overlap)).value() * job.samples_per_second;
  return out;
}

/// What to do, as a sentence.
constexpr std::string_view advice(DataParallel const& job, ScalingEstimate const& got) {
  if (got.scaling() == Scaling::good) return "Add devices: communication costs less than a fifth.";
  if (job.overlap == 0) return "Overlap communication with the backward pass first.";
  if (job.gradients == GradientFormat::FP32) return "Send gradients in BF16: half the bytes.";
  if (got.scaling() == Scaling::fair) return "Accumulate more micro-batches for each all-reduce.";
  return "Accumulate more micro-batches, shard within a node, or use fewer devices.";
}

}  // namespace frugal::plan
