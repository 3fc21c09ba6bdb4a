// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/schedule.hpp>

#include <frugal/core/compose/written_name.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <charconv>

namespace frugal::detail {

FRUGAL_INLINE void refuse_length(std::string const& why, std::string const& fix) {
  throw SettingsError(
      {.what = "the schedule has no length", .where = "Schedule", .why = why, .fix = fix});
}

FRUGAL_INLINE void lay_over(std::vector<LaidCurve>& curves, RunLimits const& horizon) {
  std::uint64_t fixed = 0;
  int open = 0;
  // Curves of more steps than a number can count end after every run.
  auto const plus = [](std::uint64_t a, std::uint64_t b) { return a + std::min(b, ~a); };
  for (LaidCurve const& curve : curves) {
    fixed = plus(fixed, curve.steps);
    open += curve.steps == to_end && !curve.is_empty;
  }
  if (open > 1) {
    refuse_length("more than one of its curves runs to the end of the run",
                  "Give all but one a number of steps.");
  }
  std::uint64_t const total = horizon.total_steps.value_or(std::uint64_t(-1));
  std::uint64_t const rest = total > fixed ? total - fixed : 1;
  std::uint64_t end = 0;
  for (LaidCurve& curve : curves) {
    // Curves after an open curve are positioned from the end of the run.
    bool const needs_end = !curve.is_empty && (!curve.endless || &curve != &curves.back());
    if (curve.steps == to_end && needs_end && !horizon.total_steps) {
      refuse_length("a curve runs to the end of the run, and the source does not know its size",
                    "Set Settings::steps, or give the curve a number of steps.");
    }
    curve.begin = end;
    if (!curve.is_empty) end = plus(end, curve.steps == to_end ? rest : curve.steps);
    curve.end = end;
  }
}

FRUGAL_INLINE std::string factor_text(double value) {
  char digits[32];
  return {digits,
          std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 3).ptr};
}

FRUGAL_INLINE std::string outlook_of(std::vector<LaidCurve> const& curves, std::uint64_t total,
                                     double last_factor) {
  std::string const run = ", and the run ends at step " + std::to_string(total);
  std::string const last = ": its last step has the factor " + factor_text(last_factor);
  for (LaidCurve const& curve : curves) {
    if (curve.is_empty) continue;
    std::string const name = template_name(curve.type);
    if (curve.steps != to_end) {
      std::string const ends = name + " ends at step " + std::to_string(curve.end) + run;
      if (curve.end > total) return ends + last;
      // The learning rate has been next to nothing for more than the last tenth of the run.
      bool const is_last = curve.end == curves.back().end;
      if (is_last && total - curve.end > total / 10 && last_factor <= 0.01) {
        return ends + ": all steps in between have the factor " + factor_text(last_factor);
      }
    } else if (curve.effect) {
      if (curve.begin + *curve.effect > total) {
        return name + " needs " + std::to_string(*curve.effect) + " steps from step " +
               std::to_string(curve.begin) + " on to have its effect" + run;
      }
    } else if (!curve.endless && curve.begin >= total) {
      return "the curves before " + name + " take " + std::to_string(curve.begin) + " steps" + run +
             last;
    }
  }
  return {};
}

}  // namespace frugal::detail
