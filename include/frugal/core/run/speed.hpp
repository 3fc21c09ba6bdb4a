// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace frugal {

/// The speed of a stretch of training, without validations. Throughput measures it; Log and
/// Progress show it.
struct Speed {
  std::uint64_t step = 0;   ///< optimizer step at the end of the stretch
  double step_seconds = 0;  ///< wall time per optimizer step
  double samples_per_second = 0;
  double tokens_per_second = 0;
  std::optional<double> flops_per_step{};  ///< of the model, forward and backward
  std::optional<double> flops_per_second{};
  std::optional<double> utilisation{};  ///< fraction of the device's peak, 0 to 1
  /// Fraction of the time that the host waited for data, 0 to 1, if the source measures it
  /// (Loader).
  std::optional<double> data_wait{};
};

}  // namespace frugal
