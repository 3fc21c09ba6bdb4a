// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/optimize/rate_schedules.hpp>

#include <cstdint>
#include <vector>

namespace frugal_test::policy_optimize_rate_schedules {

using frugal::ParameterGroup;
using frugal::detail::GroupSettings;
using frugal::detail::RateSchedules;

ParameterGroup constant(double factor) {
  return {.name = "constant", .schedule = [factor](std::uint64_t) { return factor; }};
}

TEST_CASE("a rate has the product of its groups' factors, and 1 without any") {
  GroupSettings const settings{.parameters = {}, .rates = {}, .schedules = {{}, {0}, {0, 2}}};
  RateSchedules const schedules({constant(0.5), {}, constant(0.25)}, settings, {});
  CHECK(schedules);
  CHECK(schedules.factors(0) == std::vector<double>{1, 0.5, 0.125});
}

TEST_CASE("groups without a schedule are none, and only those pass a captured step") {
  RateSchedules const none({{.name = "plain", .lr = 1}}, {}, {});
  CHECK_FALSE(none);
  CHECK_NOTHROW(none.require_none());
  CHECK_THROWS_AS(RateSchedules({constant(1)}, {}, {}).require_none(), frugal::SettingsError);
}

TEST_CASE("a factor of 0 is one, and one below it is refused") {
  GroupSettings const settings{.parameters = {}, .rates = {}, .schedules = {{0}}};
  CHECK(RateSchedules({constant(0)}, settings, {}).factors(3) == std::vector<double>{0});
  CHECK_THROWS_AS(RateSchedules({constant(-0.5)}, settings, {}).factors(3), frugal::SettingsError);
}

}  // namespace frugal_test::policy_optimize_rate_schedules
