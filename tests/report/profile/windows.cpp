// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/report/profile/windows.hpp>

namespace frugal_test::policy_profile_kineto_window {

using frugal::detail::is_of_run;

TEST_CASE("of several devices of a kind, only the run's own is counted") {
  c10::Device const second(c10::kCUDA, 1);
  CHECK(is_of_run(second, c10::kCUDA, 1));
  CHECK_FALSE(is_of_run(second, c10::kCUDA, 0));
  CHECK_FALSE(is_of_run(second, c10::kCUDA, 2));
  CHECK_FALSE(is_of_run(second, c10::kXPU, 1));
  CHECK_FALSE(is_of_run(second, c10::kCPU, 1));
}

TEST_CASE("the host's memory is one, whatever index an event has") {
  for (int const index : {-1, 0, 3}) CHECK(is_of_run(c10::kCPU, c10::kCPU, index));
  CHECK_FALSE(is_of_run(c10::kCPU, c10::kCUDA, 0));
}

}  // namespace frugal_test::policy_profile_kineto_window
