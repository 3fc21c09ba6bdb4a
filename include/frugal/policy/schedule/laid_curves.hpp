// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/run/run_limits.hpp>

namespace frugal::detail {

/// A curve of a schedule, without its type, and its steps in a run: [begin, end).
struct LaidCurve {
  std::string_view type;                ///< as the compiler spells it
  std::uint64_t steps;                  ///< its length, or to_end
  bool endless;                         ///< does not depend on its length
  std::optional<std::uint64_t> effect;  ///< of its own steps, until it does what it is for
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

[[noreturn]] void refuse_length(std::string const& why, std::string const& fix);

/// Computes where each curve ends. One curve "to the end" fills what the others leave.
void lay_over(std::vector<LaidCurve>& curves, RunLimits const& horizon);

std::string factor_text(double value);

/// What a run of `total` steps does not come to, or comes to long before its end; empty if there is
/// nothing to say. `last_factor` is that of its last step.
std::string outlook_of(std::vector<LaidCurve> const& curves, std::uint64_t total,
                       double last_factor);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/schedule/laid_curves.ipp>
#endif
