// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/schedule.hpp>
#include <set>

#include "support/reference.hpp"

namespace frugal_test::policy_schedule_curves {

using namespace frugal;
using namespace frugal_test::support;

/// Factors of the steps 0 to 40 of a run of 40 steps.
template <class... Parts>
std::vector<double> factors(Schedule<Parts...> const& schedule) {
  frugal::detail::CurveState<Parts...> curves(schedule.parts);
  curves.lay_over({.total_steps = 40});
  std::vector<double> all;
  for (std::uint64_t step = 0; step <= 40; ++step) all.push_back(curves.factor(step));
  return all;
}

/// PyTorch multiplies each rate by a quotient to get the next, 40 times; frugal computes each from
/// the step alone. 40 roundings of a double are below 1e-14; quotients of small rates lose a few
/// more digits.
constexpr double rounding = 1e-12;

struct Against {
  Json cases = reference("schedules.json").at("schedules");
  std::set<std::string> seen;

  template <class... Parts>
  void operator()(std::string const& name, Schedule<Parts...> const& schedule) {
    CAPTURE(name);
    seen.insert(name);
    auto const expected = case_named(cases, name).at("factors").get<std::vector<double>>();
    auto const found = factors(schedule);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CAPTURE(i);
      CHECK(std::abs(found[i] - expected[i]) <= rounding);
    }
  }
};

TEST_CASE("every curve has the factors of torch's scheduler, sequences of them too") {
  Against against;
  against("constant", Schedule<Constant<>>{});
  // One third is not a decimal literal, but it can be a run-time setting.
  Constant<4> third;
  third.value = 1.0 / 3;
  against("constant, a third for 4 steps", Schedule<Constant<4>, Constant<>>{.parts = {third, {}}});
  against("constant, a half to the end", Schedule<Constant<to_end, 0.5_r>>{});
  against("warm-up over 2", Schedule<Warmup<2>>{});
  against("warm-up over 10", Schedule<Warmup<10>>{});
  against("warm-up over 16", Schedule<Warmup<16>>{});
  against("cosine", Schedule<Cosine>{});
  against("cosine to a tenth", Schedule<CosineDecay<0.1_r>>{});
  against("linear to 0", Schedule<Linear>{});
  against("linear to a tenth", Schedule<LinearDecay<0.1_r>>{});
  against("linear to a quarter, then flat", Schedule<LinearDecay<0.25_r, 20>>{});
  against("step", Schedule<StepDecay<10>>{});
  against("step of 7 by a half", Schedule<StepDecay<7, 0.5_r>>{});
  against("milestones", Schedule<MultiStepDecay<0.3_r, 5, 12, 30>>{});
  against("exponential", Schedule<StepDecay<1, 0.9_r>>{});
  against("polynomial of power 1", Schedule<Polynomial>{});
  against("polynomial of power 2", Schedule<PolynomialDecay<2.0_r>>{});
  against("polynomial of power 0.5, then flat", Schedule<PolynomialDecay<0.5_r, 20>>{});
  against("warm-up, cosine", Schedule<Warmup<8>, Cosine>{});
  against("warm-up, cosine to a tenth", Schedule<Warmup<5>, CosineDecay<0.1_r>>{});
  against("warm-up, linear", Schedule<Warmup<8>, Linear>{});
  against("warm-up, polynomial", Schedule<Warmup<8>, PolynomialDecay<2.0_r>>{});
  against("warm-up, stable, decay", WarmupStableDecay<6, 12>{});
  against("warm-up, step", Schedule<Warmup<4>, StepDecay<9, 0.5_r>>{});
  against("warm restarts", Schedule<CosineRestarts<10>>{});
  against("warm restarts, twice as long", Schedule<CosineRestarts<6, 2, 0.1_r>>{});
  CHECK(against.seen.size() == against.cases.size());
}

TEST_CASE("a curve's settings may be given at run time") {
  CHECK(factors(
            Schedule<Warmup<2>, Cosine>{.parts = {Warmup<2>{.steps = 5}, Cosine{.floor = 0.1}}}) ==
        factors(Schedule<Warmup<5>, CosineDecay<0.1_r>>{}));
}

TEST_CASE("warm restarts far into a run take no longer than at its beginning") {
  // Periods are skipped by a division: a loop over 2^62 of them would never end.
  CosineRestarts<3> const restarts;
  CHECK(restarts.factor((std::uint64_t{1} << 62) / 3 * 3, 0) == 1.0);
  CHECK(restarts.factor((std::uint64_t{1} << 62) / 3 * 3 + 1, 0) == restarts.factor(1, 0));
}

}  // namespace frugal_test::policy_schedule_curves
