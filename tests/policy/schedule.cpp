// SPDX-License-Identifier: Apache-2.0
#include "policy/optimize/fixture.hpp"
#include "support/files.hpp"
#include "support/reference.hpp"
#include "support/scripted.hpp"

#include <doctest/doctest.h>

#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/schedule.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

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
  against("constant, a half to the end", Schedule<Constant<to_end, 0.5>>{});
  against("warm-up over 2", Schedule<Warmup<2>>{});
  against("warm-up over 10", Schedule<Warmup<10>>{});
  against("warm-up over 16", Schedule<Warmup<16>>{});
  against("cosine", Schedule<Cosine>{});
  against("cosine to a tenth", Schedule<CosineDecay<0.1>>{});
  against("linear to 0", Schedule<LinearDecay<>>{});
  against("linear to a tenth", Schedule<LinearDecay<0.1>>{});
  against("linear to a quarter, then flat", Schedule<LinearDecay<0.25, 20>>{});
  against("step", Schedule<StepDecay<10>>{});
  against("step of 7 by a half", Schedule<StepDecay<7, 0.5>>{});
  against("milestones", Schedule<MultiStepDecay<0.3, 5, 12, 30>>{});
  against("exponential", Schedule<StepDecay<1, 0.9>>{});
  against("polynomial of power 1", Schedule<Polynomial>{});
  against("polynomial of power 2", Schedule<PolynomialDecay<2.0>>{});
  against("polynomial of power 0.5, then flat", Schedule<PolynomialDecay<0.5, 20>>{});
  against("warm-up, cosine", Schedule<Warmup<8>, Cosine>{});
  against("warm-up, cosine to a tenth", Schedule<Warmup<5>, CosineDecay<0.1>>{});
  against("warm-up, linear", Schedule<Warmup<8>, LinearDecay<>>{});
  against("warm-up, polynomial", Schedule<Warmup<8>, PolynomialDecay<2.0>>{});
  against("warm-up, stable, decay", WarmupStableDecay<6, 12>{});
  against("warm-up, step", Schedule<Warmup<4>, StepDecay<9, 0.5>>{});
  against("warm restarts", Schedule<CosineRestarts<10>>{});
  against("warm restarts, twice as long", Schedule<CosineRestarts<6, 2, 0.1>>{});
  CHECK(against.seen.size() == against.cases.size());
}

TEST_CASE("a curve's settings may be given at run time") {
  CHECK(factors(
            Schedule<Warmup<2>, Cosine>{.parts = {Warmup<2>{.steps = 5}, Cosine{.floor = 0.1}}}) ==
        factors(Schedule<Warmup<5>, CosineDecay<0.1>>{}));
  CHECK(factors(
            Schedule<Warmup<2>, Cosine>{.parts = {Warmup<2>{.steps = 0}, Cosine{.floor = 0.1}}}) ==
        factors(Schedule<CosineDecay<0.1>>{}));
}

TEST_CASE("warm restarts far into a run take no longer than at its beginning") {
  // Periods are skipped by a division: a loop over 2^62 of them would never end.
  CosineRestarts<3> const restarts;
  CHECK(restarts.factor((std::uint64_t{1} << 62) / 3 * 3, 0) == 1.0);
  CHECK(restarts.factor((std::uint64_t{1} << 62) / 3 * 3 + 1, 0) == restarts.factor(1, 0));
}

}  // namespace frugal_test::policy_schedule_curves

namespace frugal_test::policy_schedule {

using namespace frugal_test::policy_optimize;
using frugal::Constant;
using frugal::Cosine;
using frugal::Every;
using frugal::LinearDecay;
using frugal::Optimize;
using frugal::Patience;
using frugal::Plateau;
using frugal::SanityBatches;
using frugal::Schedule;
using frugal::SGD;
using frugal::StepDecay;
using frugal::Validate;
using frugal::Warmup;

using Objective = policy_optimize::Linear;

Table const one{{at::ones({1})}};

/// A source of unknown length.
struct Unsized {
  std::uint64_t steps = 10;
  std::uint64_t at = 0;
  void seek(frugal::Cursor const& cursor) { at = cursor.position; }
  std::optional<Table> next() { return at++ < steps ? std::optional<Table>(one) : std::nullopt; }
};
static_assert(frugal::Source<Unsized> && !frugal::SizedSource<Unsized>);

/// The movement of one weight in each step of gradient 1 and rate 1: the current factor.
template <class Source, class... Ps>
std::vector<double> moves(frugal::Settings const& settings, Source&& source,
                          Ps const&... policies) {
  auto const module = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1})});
  std::vector<double> all;
  double last = 0;
  Spy spy{.each_step = [&](frugal::Counters const&) {
    double const now = module->parameters()[0].item<double>();
    all.push_back(last - now);
    last = now;
  }};
  frugal::Trainer{module, Objective{}, settings, Optimize<SGD>{.lr = 1.0}, policies..., spy}.fit(
      source);
  return all;
}

void check_close(std::vector<double> const& found, std::vector<double> const& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    // Differences of float32 weights up to 25.
    CHECK(std::abs(found[i] - expected[i]) < 1e-5);
  }
}

TEST_CASE("the optimizer's first step uses the schedule's first factor, and so on") {
  auto const expected = case_named(reference("schedules.json").at("schedules"), "warm-up, cosine")
                            .at("factors")
                            .get<std::vector<double>>();
  auto found = moves({.epochs = 4}, std::vector<Table>(10, one), Schedule<Warmup<8>, Cosine>{});
  found.push_back(expected.back());  // the factor after the run
  check_close(found, expected);
}

TEST_CASE("a schedule counts optimizer steps, not micro-batches") {
  // 5 micro-batches make windows of 2, 2 and 1: three steps per epoch.
  auto const found = moves({.epochs = 2}, std::vector<Table>(5, one), Schedule<LinearDecay<>>{},
                           frugal::Accumulate<2>{});
  check_close(found, {1.0, 5.0 / 6, 4.0 / 6, 3.0 / 6, 2.0 / 6, 1.0 / 6});
}

TEST_CASE("the end of the run is where its steps end, if that is before its epochs do") {
  check_close(
      moves({.epochs = 9, .steps = 4}, std::vector<Table>(3, one), Schedule<LinearDecay<>>{}),
      {1.0, 0.75, 0.5, 0.25});
}

TEST_CASE("the end of a run with a source without a size is known if the steps are given") {
  check_close(moves({.epochs = 9, .steps = 4}, Unsized{}, Schedule<LinearDecay<>>{}),
              {1.0, 0.75, 0.5, 0.25});
}

TEST_CASE("the rate stays at the end of a warm-up") {
  check_close(moves({}, std::vector<Table>(5, one), Schedule<Warmup<2>>{}),
              {0.5, 1.0, 1.0, 1.0, 1.0});
}

template <class S, class Source>
std::string refusal(S const& schedule, Source&& source) {
  return error_of<frugal::SettingsError>([&] { moves({}, source, schedule); });
}

TEST_CASE("two curves to the end of the run are refused") {
  CHECK(contains(refusal(Schedule<Constant<>, Cosine>{}, std::vector<Table>(3, one)),
                 "more than one of its curves runs to the end"));
}

TEST_CASE("a curve to the end of a run of unknown length is refused") {
  CHECK(contains(refusal(Schedule<Warmup<2>, Cosine>{}, Unsized{}),
                 "the source does not know its size"));
}

TEST_CASE("a decay in the last steps of a run of unknown length is refused") {
  CHECK(contains(refusal(frugal::WarmupStableDecay<2, 3>{}, Unsized{}),
                 "the source does not know its size"));
}

TEST_CASE("curves that need no end may end a run of unknown length") {
  check_close(moves({}, Unsized{.steps = 4}, Schedule<Warmup<2>, Constant<>>{}), {0.5, 1, 1, 1});
  check_close(moves({}, Unsized{.steps = 4}, Schedule<StepDecay<2, 0.5>>{}), {1, 1, 0.5, 0.5});
}

TEST_CASE("a run shorter than its fixed curves follows them as far as it goes") {
  check_close(moves({}, std::vector<Table>(3, one), Schedule<Warmup<8>, Constant<>>{}),
              {0.125, 0.25, 0.375});
}

/// What a run of so many steps is told by the schedule, before it begins.
template <class S>
std::string told(S const& schedule, std::uint64_t steps) {
  frugal::Trainer trainer{std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1})}),
                          Objective{}, frugal::Settings{.steps = steps}, Optimize<SGD>{.lr = 1.0},
                          schedule};
  std::string text;
  for (std::string const& each : trainer.fit(std::vector<Table>(3, one)).warnings) text += each;
  std::string const foreseen = schedule.outlook({.steps = steps, .total_steps = steps});
  CHECK(text == (foreseen.empty() ? "" : "Schedule: " + foreseen));
  return text;
}

TEST_CASE("a curve that is longer than the run is told before the first step, with both numbers") {
  CHECK(told(Schedule<Warmup<2000>, Constant<>>{}, 12) ==
        "Schedule: Warmup ends at step 2000, and the run ends at step 12: its last step has the "
        "factor 0.006");
  CHECK(told(frugal::WarmupStableDecay<2, 10>{}, 8) ==
        "Schedule: Ramp ends at step 13, and the run ends at step 8: its last step has the factor "
        "0.6");
  CHECK(told(Schedule<Warmup<12>, Constant<>>{}, 12) == "");
  Schedule<Warmup<2>, Cosine> changed;
  std::get<0>(changed.parts).steps = 9;
  CHECK(told(changed, 8).starts_with("Schedule: Warmup ends at step 9, "));
  CHECK(told(changed, 9) ==
        "Schedule: the curves before CosineDecay take 9 steps, and the run ends at step 9: its "
        "last step has the factor 1");
  CHECK(told(changed, 10) == "");
}

TEST_CASE("a decay to nothing long before the end of the run is told") {
  CHECK(told(Schedule<LinearDecay<0, 5>>{}, 20) ==
        "Schedule: Ramp ends at step 5, and the run ends at step 20: all steps in between have the "
        "factor 0");
  CHECK(told(Schedule<LinearDecay<0, 18>>{}, 20) == "");   // a tenth is left
  CHECK(told(Schedule<LinearDecay<0.1, 5>>{}, 20) == "");  // and trains on
  CHECK(told(Schedule<Warmup<5>>{}, 20) == "");
}

TEST_CASE("milestones and restarts beyond the end of the run are told") {
  using frugal::CosineRestarts;
  using frugal::MultiStepDecay;
  CHECK(told(Schedule<Warmup<2>, StepDecay<30>>{}, 12) ==
        "Schedule: StepDecay needs 31 steps from step 2 on to have its effect, and the run ends at "
        "step 12");
  CHECK(told(Schedule<MultiStepDecay<0.1, 4, 12>>{}, 12)
            .starts_with("Schedule: MultiStepDecay needs 13 steps from step 0 on"));
  CHECK(told(Schedule<MultiStepDecay<0.1, 4, 11>>{}, 12) == "");
  CHECK(told(Schedule<CosineRestarts<13>>{}, 12)
            .starts_with("Schedule: CosineRestarts needs 13 steps"));
  CHECK(told(Schedule<CosineRestarts<12>>{}, 12) == "");
}

TEST_CASE("of a run of unknown length nothing is told, nor of a schedule that fit refuses") {
  CHECK(Schedule<Warmup<2000>, Constant<>>{}.outlook({}) == "");
  CHECK(Schedule<Constant<>, Cosine>{}.outlook({.total_steps = 12}) == "");
}

/// A list determines the validation losses.
struct Scripted {
  std::vector<double>* losses;
  template <class Module>
  at::Tensor operator()(Module& module, Table const& table) const {
    if (at::GradMode::is_enabled()) return Objective{}(module, table);
    double const next = losses->front();
    losses->erase(losses->begin());
    return at::scalar_tensor(next);
  }
};

TEST_CASE("Plateau lowers the rate of the step after the validation that exhausts its patience") {
  std::vector<double> losses{1.0, 2.0, 2.0, 2.0, 2.0, 2.0};
  auto const module = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1})});
  Seen seen;
  frugal::Trainer trainer{module,
                          Scripted{&losses},
                          frugal::Settings{.epochs = 3},
                          Optimize<SGD>{.lr = 1.0},
                          Schedule<Plateau<0.5, Patience<1>>>{},
                          Validate<Every<2>, SanityBatches<0>>{},
                          Spy{.seen = &seen}};
  static_cast<void>(trainer.fit(std::vector<Table>(4, one), std::vector<Table>{one}));
  // Validated after steps 2, 4, ...; the third is the second in a row without improvement.
  CHECK(seen.validated_at == std::vector<std::uint64_t>{2, 4, 6, 8, 10, 12});
  CHECK(seen.rates == std::vector<double>{1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25});
}

TEST_CASE("Plateau multiplies the curves' factor") {
  std::vector<double> losses{1.0, 2.0, 2.0};
  auto const module = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1})});
  Seen seen;
  frugal::Trainer trainer{module,
                          Scripted{&losses},
                          frugal::Settings{.epochs = 3},
                          Optimize<SGD>{.lr = 1.0},
                          Schedule<Warmup<4>, Plateau<0.5, Patience<1>>, Constant<>>{},
                          Validate<SanityBatches<0>>{},
                          Spy{.seen = &seen}};
  static_cast<void>(trainer.fit(std::vector<Table>(2, one), std::vector<Table>{one}));
  CHECK(seen.rates == std::vector<double>{0.25, 0.5, 0.75, 1, 1, 1});

  losses = {1.0, 2.0, 2.0, 2.0};
  seen = {};
  trainer.settings().epochs = 4;
  static_cast<void>(trainer.fit(std::vector<Table>(2, one), std::vector<Table>{one}));
  CHECK(seen.rates == std::vector<double>{0.25, 0.5, 0.75, 1, 1, 1, 0.5, 0.5});
}

TEST_CASE("a curve that gives no learning rate is refused before the step that would use it") {
  auto const module = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1})});
  Schedule<Constant<2>, Constant<>> broken;
  std::get<1>(broken.parts).value = -0.5;
  frugal::Trainer trainer{module, Objective{}, frugal::Settings{}, Optimize<SGD>{.lr = 1.0},
                          broken};
  std::string const text =
      error_of<frugal::SettingsError>([&] { trainer.fit(std::vector<Table>(4, one)); });
  CHECK(contains(text, "multiplied by -0.5"));
  CHECK(contains(text, "before step 2"));
  // Two steps of gradient 1 at the rate 1, and none after them.
  CHECK(module->parameters()[0].item<double>() == -2.0);
}

TEST_CASE("Plateau lists the metrics if its own is not among them") {
  std::vector<double> losses{1.0};
  frugal::Trainer trainer{std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1})}),
                          Scripted{&losses},
                          frugal::Settings{},
                          Optimize<SGD>{},
                          Schedule<Plateau<0.5, Patience<1>, frugal::WatchAccuracy>>{},
                          Validate<SanityBatches<0>>{},
                          support::AddsNothing{}};
  std::string const text = error_of<frugal::MetricError>(
      [&] { trainer.fit(std::vector<Table>(1, one), std::vector<Table>{one}); });
  CHECK(contains(text, "no metric 'accuracy'"));
  CHECK(contains(text, "there are: loss"));
}

TEST_CASE(
    "a resumed run of another length begins with its own schedule's factor, and says no more what "
    "the other did not come to") {
  support::TemporaryFolder const folder;
  std::vector<std::string> said;
  auto const weights = [&](std::uint64_t steps) {
    auto const module = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1})});
    std::vector<double> all;
    Spy spy{.each_step = [&](frugal::Counters const&) {
      all.push_back(module->parameters()[0].item<double>());
    }};
    std::vector<Table> source(20, one);
    said = frugal::Trainer{module,
                           Objective{},
                           frugal::Settings{.run_dir = folder.path(), .epochs = 1, .steps = steps},
                           Optimize<SGD>{.lr = 1.0},
                           Schedule<LinearDecay<>>{},
                           frugal::Checkpoint<frugal::KeepEvery<6>>{},
                           spy}
               .fit(source)
               .warnings;
    return all;
  };
  check_close(weights(4), {-1.0, -1.75, -2.25, -2.5});
  REQUIRE(said.size() == 1);
  CHECK(said.front().find("the run ends at step 4") != std::string::npos);
  // Step 4 of 8, and not the end of 4.
  check_close(weights(8), {-3.0, -3.375, -3.625, -3.75});
  CHECK(said.empty());
}

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
  LaidCurve empty = warmup(0);
  empty.is_empty = true;
  CHECK(ends({empty, warmup(to_end)}, 10) == std::vector<std::uint64_t>{0, 10});
  CHECK(ends({warmup(2), empty}, 0) == std::vector<std::uint64_t>{2, 2});
  std::uint64_t const most = ~std::uint64_t{0};
  CHECK(ends({warmup(3), constant(most), constant(2)}, 10) ==
        std::vector<std::uint64_t>{3, most, most});
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

/// What a policy compares with its checkpoint.
struct Compared {
  std::map<std::string, double> numbers{};
  void compare_in_processes(std::string const& name, double value) { numbers[name] = value; }
};

TEST_CASE("all numbers of curves and of Plateau are compared with those of a checkpoint") {
  frugal::Schedule<frugal::Constant<3>, frugal::CosineRestarts<4, 2>,
                   frugal::MultiStepDecay<0.5, 7, 9>, frugal::Plateau<0.1>>
      schedule;
  schedule.plateau().patience = 6;
  Compared found;
  frugal::detail::compare_numbers_of(found, "Schedule", schedule.parts);
  CHECK(found.numbers.size() == 2 + 4 + 5 + 8);
  CHECK(found.numbers.at("Schedule, part 1, constant: steps") == 3);
  CHECK(found.numbers.at("Schedule, part 2, restarts: growth") == 2);
  CHECK(found.numbers.at("Schedule, part 3, multi_step: milestones 2") == 9);
  // One more or one less is no other number of those that are in both.
  CHECK(found.numbers.at("Schedule, part 3, multi_step: number of milestones") == 2);
  CHECK(found.numbers.at("Schedule, part 4, plateau: patience") == 6);
}

}  // namespace frugal_test::policy_schedule
