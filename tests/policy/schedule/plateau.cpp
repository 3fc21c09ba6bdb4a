// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/schedule.hpp>

#include "support/reference.hpp"

namespace frugal_test::policy_schedule_plateau {

using namespace frugal;
using namespace frugal_test::support;

/// Patience as a number, for a table of cases; 0 too, which PyTorch allows and Patience does not.
template <int N>
struct Waits {
  static constexpr int validations = N;
};

using Lower = Watch<"x", Better::lower>;
using Higher = Watch<"x", Better::higher>;

template <class Limit, class Metric, Rational Factor>
void follow(Json const& which) {
  Json const& arguments = which.at("arguments");
  Plateau<Factor, Limit, Metric> plateau;
  plateau.threshold = arguments.at("threshold");
  plateau.relative = arguments.at("threshold_mode") == "rel";
  plateau.cooldown = arguments.at("cooldown");
  plateau.min_factor = arguments.at("min_lr");
  plateau.smallest_change = arguments.at("eps");

  typename decltype(plateau)::Memory memory;
  Json const& metrics = which.at("metrics");
  Json const& factors = which.at("factors");
  REQUIRE(factors.size() == metrics.size() + 1);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    CAPTURE(i);
    CHECK(memory.scale == doctest::Approx(factors[i].get<double>()).epsilon(1e-12));
    plateau.observe(metrics[i].is_null() ? std::nan("") : metrics[i].get<double>(), memory);
    if (which.at("best")[i].is_null()) {
      CHECK(std::isinf(memory.best));
    } else {
      CHECK(memory.best == which.at("best")[i].get<double>());
    }
  }
  CHECK(memory.scale == doctest::Approx(factors.back().get<double>()).epsilon(1e-12));
}

template <class Limit>
void follow_patient(Json const& which) {
  Json const& arguments = which.at("arguments");
  bool const lower = arguments.at("mode") == "min";
  double const factor = arguments.at("factor");
  if (factor == 0.1) {
    lower ? follow<Limit, Lower, 0.1>(which) : follow<Limit, Higher, 0.1>(which);
  } else if (factor == 0.5) {
    lower ? follow<Limit, Lower, 0.5>(which) : follow<Limit, Higher, 0.5>(which);
  } else {
    REQUIRE(factor == 0.3);
    lower ? follow<Limit, Lower, 0.3>(which) : follow<Limit, Higher, 0.3>(which);
  }
}

TEST_CASE("Plateau lowers the rate where ReduceLROnPlateau does, on every recorded curve") {
  Json const file = reference("schedules.json");
  int cases = 0;
  for (Json const& which : file.at("plateaus")) {
    CAPTURE(which.at("name").get<std::string>());
    ++cases;
    switch (which.at("arguments").at("patience").get<int>()) {
      case 0:
        follow_patient<Waits<0>>(which);
        break;
      case 1:
        follow_patient<Patience<1>>(which);
        break;
      case 2:
        follow_patient<Patience<2>>(which);
        break;
      case 3:
        follow_patient<Patience<3>>(which);
        break;
      default:
        REQUIRE(which.at("arguments").at("patience") == 10);
        follow_patient<Patience<10>>(which);
    }
  }
  CHECK(cases == 17);
}

/// The number of values that a plateau takes as better, of values that each become worse by 1e-5.
template <class Metric>
int taken_as_better(double first, double change, bool by_magnitude) {
  Plateau<0.1, Patience<10>, Metric> plateau;
  plateau.by_magnitude = by_magnitude;
  typename Plateau<0.1, Patience<10>, Metric>::Memory memory;
  plateau.observe(first, memory);
  int better = 0;
  for (double value = first + change; better < 5 && memory.bad < 5; value += change) {
    int const before = memory.bad;
    plateau.observe(value, memory);
    better += memory.bad <= before ? 1 : 0;
  }
  CHECK(plateau.misjudges(memory) == (first < 0 && !by_magnitude));
  return better;
}

TEST_CASE(
    "by magnitude, a negative metric that becomes worse does not improve, as it does in PyTorch") {
  CHECK(taken_as_better<Lower>(-1.0, 1e-5, false) == 5);  // PyTorch's: -0.99999 "improves" on -1
  CHECK(taken_as_better<Lower>(-1.0, 1e-5, true) == 0);
  CHECK(taken_as_better<Higher>(-1.0, -1e-5, false) == 5);
  CHECK(taken_as_better<Higher>(-1.0, -1e-5, true) == 0);
  // Positive metrics are judged alike, and real improvements are seen in any sign.
  CHECK(taken_as_better<Lower>(1.0, 1e-5, false) == 0);
  CHECK(taken_as_better<Lower>(1.0, 1e-5, true) == 0);
  CHECK(taken_as_better<Lower>(-1.0, -1e-2, true) == 5);
  CHECK(taken_as_better<Higher>(-1.0, 1e-2, true) == 5);
}

TEST_CASE("a reduction of less than a hundred-millionth does not count, as in PyTorch") {
  Plateau<0.1, Waits<0>> plateau;
  Plateau<0.1, Waits<0>>::Memory memory;
  plateau.observe(1.0, memory);
  for (int i = 0; i < 20; ++i) plateau.observe(1.0, memory);
  CHECK(memory.scale == doctest::Approx(1e-8).epsilon(1e-9));
}

}  // namespace frugal_test::policy_schedule_plateau
