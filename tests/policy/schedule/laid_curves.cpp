// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/schedule/laid_curves.hpp>

#include <cstdint>
#include <vector>

namespace frugal_test::policy_schedule_laid_curves {

using frugal::to_end;
using frugal::detail::LaidCurve;

LaidCurve warmup(std::uint64_t steps) { return {"Warmup<>", steps, false, {}}; }
LaidCurve constant(std::uint64_t steps) { return {"Constant<>", steps, true, {}}; }

/// Where each curve ends in a run of `total` steps; 0: of unknown length.
std::vector<std::uint64_t> ends(std::vector<LaidCurve> curves, std::uint64_t total) {
  frugal::RunLimits limits;
  if (total != 0) limits.total_steps = total;
  frugal::detail::lay_over(curves, limits);
  std::vector<std::uint64_t> found;
  for (LaidCurve const& each : curves) {
    CHECK(each.begin == (found.empty() ? 0 : found.back()));
    found.push_back(each.end);
  }
  return found;
}

TEST_CASE("the curve to the end fills what the others leave, wherever it is") {
  CHECK(ends({warmup(3), warmup(to_end)}, 10) == std::vector<std::uint64_t>{3, 10});
  CHECK(ends({warmup(3), warmup(to_end), warmup(2)}, 10) == std::vector<std::uint64_t>{3, 8, 10});
  CHECK(ends({warmup(12), warmup(to_end)}, 10) == std::vector<std::uint64_t>{12, 13});
}

TEST_CASE("only an endless curve, and only as the last one, does without the length of the run") {
  CHECK(ends({warmup(3), constant(to_end)}, 0).front() == 3);
  CHECK_THROWS_AS(ends({warmup(3), warmup(to_end)}, 0), frugal::SettingsError);
  CHECK_THROWS_AS(ends({constant(to_end), warmup(3)}, 0), frugal::SettingsError);
}

TEST_CASE("two curves to the end are refused") {
  CHECK_THROWS_AS(ends({constant(to_end), warmup(to_end)}, 10), frugal::SettingsError);
}

TEST_CASE(
    "the first curve that a run does not come to is told, and a short one only if it is over") {
  std::vector<LaidCurve> curves{warmup(30), warmup(20)};
  frugal::detail::lay_over(curves, {.total_steps = 12});
  CHECK(frugal::detail::outlook_of(curves, 12, 0.25) ==
        "Warmup ends at step 30, and the run ends at step 12: its last step has the factor 0.25");
  curves = {warmup(2), constant(to_end)};
  frugal::detail::lay_over(curves, {.total_steps = 12});
  CHECK(frugal::detail::outlook_of(curves, 12, 0.0) == "");
}

}  // namespace frugal_test::policy_schedule_laid_curves
