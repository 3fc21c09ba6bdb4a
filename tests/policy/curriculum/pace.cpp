// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/policy/curriculum/pace.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace frugal_test::policy_curriculum_pace {

using frugal::LinearPace;
using frugal::RootPace;

TEST_CASE("a pace starts with its share, grows, and ends with all") {
  auto const check = []<class Pace>(Pace) {
    CHECK(Pace::share(0) == doctest::Approx(0.2).epsilon(1e-12));
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch)
      CHECK(Pace::share(epoch) < Pace::share(epoch + 1));
    CHECK(Pace::share(5) == 1);
    CHECK(Pace::share(1'000'000) == 1);
  };
  check(LinearPace<5>{});
  check(RootPace<5>{});
  // Platanios et al., equation 8: sqrt(t (1 - c^2) / T + c^2) at t = 1, T = 5, c = 0.2.
  CHECK(RootPace<5>::share(1) == doctest::Approx(0.4816637832).epsilon(1e-9));
}

}  // namespace frugal_test::policy_curriculum_pace
