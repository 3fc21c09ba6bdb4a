// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/early_stop.hpp>

#include "support/scripted.hpp"

namespace frugal_test::policy_early_stop {

using namespace frugal_test::support;
using frugal::Better;
using frugal::EarlyStop;
using frugal::Patience;
using frugal::Watch;
using frugal::WatchLoss;

using WatchHigherLoss = Watch<"loss", Better::higher>;

double number_in(Json const& value) {
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}

struct Ended {
  std::uint64_t validations = 0;
  std::string by;
  std::optional<double> best;
  std::optional<std::uint64_t> restored;
  double weight = 0;  ///< minus the number of steps behind it
};

template <class P>
Ended run(std::vector<double> const& curve, P const& policy) {
  std::map<std::uint64_t, Frozen> saved;
  std::size_t at = 0;
  auto const module = std::make_shared<OneWeight>();
  frugal::Trainer trainer{module,
                          Scripted{&curve, &at},
                          frugal::Settings{.epochs = curve.size()},
                          frugal::Optimize<frugal::SGD>{.lr = 1.0},
                          policy,
                          Resume{.after_epoch = &saved}};
  std::vector<at::Tensor> const one{at::zeros({1})};
  auto const report = trainer.fit(one, one);
  auto const& best = saved.at(report.epochs).run.values.at("policies/EarlyStop/best");
  double const* const number = std::get_if<double>(&best);
  return {report.validations.size(), report.stopped_by,
          number ? std::optional(*number) : std::nullopt, report.restored_step,
          module->weight.item<double>()};
}

template <int N>
Ended run_case(Json const& which, std::vector<double> const& curve) {
  double const min_delta = which.at("min_delta");
  if (which.at("mode") == "max") {
    return run(curve, EarlyStop<Patience<N>, WatchHigherLoss>{.min_delta = min_delta,
                                                              .restore_best = true});
  }
  return run(curve, EarlyStop<Patience<N>>{.min_delta = min_delta, .restore_best = true});
}

TEST_CASE("EarlyStop ends every recorded curve where Keras does, with its best value and weights") {
  Json const file = reference("early_stop.json");
  int cases = 0;
  for (Json const& which : file.at("cases")) {
    CAPTURE(which.at("name").get<std::string>());
    ++cases;
    std::vector<double> curve;
    for (Json const& value : which.at("values")) curve.push_back(number_in(value));
    int const patience = which.at("patience");
    REQUIRE((patience >= 1 && patience <= 4));
    Ended const ended = patience == 1   ? run_case<1>(which, curve)
                        : patience == 2 ? run_case<2>(which, curve)
                        : patience == 3 ? run_case<3>(which, curve)
                                        : run_case<4>(which, curve);
    bool const stops = !which.at("stops_at").is_null();
    CHECK(ended.by == (stops ? "EarlyStop" : ""));
    CHECK(ended.validations == (stops ? which.at("stops_at").get<std::uint64_t>() : curve.size()));
    if (which.at("best").is_null()) {
      CHECK_FALSE(std::isfinite(ended.best.value_or(std::nan(""))));
    } else {
      CHECK(ended.best.value() == which.at("best").get<double>());
    }
    auto const restores = which.at("restores").get<std::uint64_t>();
    CHECK(ended.restored == restores);
    CHECK(ended.weight == -static_cast<double>(restores));
  }
  CHECK(cases == 19);
}

template <int N>
Ended run_in_grace(std::vector<double> const& curve) {
  return run(curve, EarlyStop<Patience<2>, frugal::GraceEpochs<N>>{.restore_best = true});
}

TEST_CASE("a grace period ends where that of Keras does, and nothing of it is the best") {
  Json const file = reference("early_stop.json");
  int cases = 0;
  for (Json const& which : file.at("grace")) {
    CAPTURE(which.at("name").get<std::string>());
    ++cases;
    std::vector<double> curve;
    for (Json const& value : which.at("values")) curve.push_back(number_in(value));
    REQUIRE(which.at("patience").get<int>() == 2);
    int const epochs = which.at("start_from_epoch");
    REQUIRE((epochs == 2 || epochs == 3 || epochs == 9));
    Ended const ended = epochs == 2   ? run_in_grace<2>(curve)
                        : epochs == 3 ? run_in_grace<3>(curve)
                                      : run_in_grace<9>(curve);
    bool const stops = !which.at("stops_at").is_null();
    CHECK(ended.by == (stops ? "EarlyStop" : ""));
    CHECK(ended.validations == (stops ? which.at("stops_at").get<std::uint64_t>() : curve.size()));
    CHECK(ended.best.has_value() == !which.at("best").is_null());
    if (ended.best) CHECK(*ended.best == which.at("best").get<double>());
    CHECK(ended.weight == -which.at("restores").get<double>());
  }
  CHECK(cases == 4);
}

TEST_CASE("a run that ends within the grace period is told why no weights are restored") {
  EarlyStop<Patience<2>, frugal::GraceEpochs<9>> const policy{.restore_best = true};
  auto const report = run_script({3, 2, 1}, policy);
  REQUIRE(report.warnings.size() == 2);
  CHECK(report.warnings[0] ==
        "EarlyStop: its grace period is 9 epochs, and the run ends with its epoch 3: it watches no "
        "validation");
  CHECK(report.warnings[1] ==
        "EarlyStop: no validation after the grace period of 9 epochs gave a number, so the module "
        "keeps its last weights");
}

TEST_CASE("options of EarlyStop come in any order") {
  std::vector<double> const curve{3, 2, 1, 0.5, 0.25};
  CHECK(run(curve, EarlyStop<WatchHigherLoss, Patience<2>>{}).validations == 3);
  CHECK(run(curve, EarlyStop<Patience<2>, WatchHigherLoss>{}).validations == 3);
  CHECK(run(curve, EarlyStop<WatchHigherLoss>{}).validations == 4);
}

TEST_CASE("a NaN in the first validation is not the best, and uses up patience") {
  double const nan = std::nan("");
  CHECK(run({nan, nan, nan, 0.5}, EarlyStop<Patience<3>>{}).validations == 3);
  Ended const ended = run({nan, 1.0, 0.9, 0.95, 0.8, 0.7}, EarlyStop<Patience<2>>{});
  CHECK(ended.by == "");
  CHECK(ended.best.value() == 0.7);
}

TEST_CASE("exhausted patience survives a resume, and so does the best value") {
  std::vector<double> const curve{1.0, 0.5, 0.6, 0.6, 0.55, 0.55, 0.55};
  EarlyStop<Patience<3>> const policy;
  std::map<std::uint64_t, Frozen> saved;
  CHECK(run_script(curve, policy, Resume{.after_epoch = &saved}).epochs == 5);
  for (std::uint64_t const epoch : {1U, 2U, 3U, 4U}) {
    CAPTURE(epoch);
    std::vector<double> const rest(curve.begin() + static_cast<std::ptrdiff_t>(epoch), curve.end());
    std::size_t at = 0;
    frugal::Trainer trainer{std::make_shared<OneWeight>(),
                            Scripted{&rest, &at},
                            frugal::Settings{.epochs = curve.size()},
                            frugal::Optimize<frugal::SGD>{.lr = 1.0},
                            policy,
                            Resume{.from = &saved.at(epoch)}};
    std::vector<at::Tensor> const one{at::zeros({1})};
    auto const report = trainer.fit(one, one);
    CHECK(report.epochs == 5);
    CHECK(report.stopped_by == "EarlyStop");
  }
}

TEST_CASE("a negative min_delta is refused") {
  CHECK_THROWS_AS(run_script({1.0}, EarlyStop<>{.min_delta = -0.1}), frugal::SettingsError);
  CHECK_THROWS_AS(run_script({1.0}, EarlyStop<>{.min_delta = std::nan("")}), frugal::SettingsError);
}

TEST_CASE("a metric that no policy has added is an error that names those that are measured") {
  try {
    run_script({1.0}, EarlyStop<Patience<3>, frugal::WatchAccuracy>{}, AddsNothing{});
    FAIL("no error came");
  } catch (frugal::MetricError const& error) {
    CHECK(error.fault().why == "there are: loss");
  }
}

}  // namespace frugal_test::policy_early_stop
