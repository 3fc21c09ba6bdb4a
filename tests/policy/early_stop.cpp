// SPDX-License-Identifier: Apache-2.0
#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/running.hpp"
#include "support/scripted.hpp"

#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/policy/checkpoint/weights.hpp>
#include <frugal/policy/early_stop.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

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

namespace frugal_test::policy_early_stop_best_weights {

using namespace support;
using namespace support::dying_runs;
using frugal::Every;
using frugal::Patience;
using Sgd = frugal::Optimize<frugal::SGD>;
using Tensors = std::map<std::string, at::Tensor>;
template <int N>
using EarlyStop = frugal::EarlyStop<Patience<N>>;

TEST_CASE("the module ends with the weights that a hand-written loop kept, buffers included") {
  double const lr = 1.5;
  frugal::Batch const train = samples(40);
  frugal::Batch const valid = samples(16, 92);
  auto const hand = std::make_shared<Mlp>(Mlp::Shape{.norm = true});
  hand->to(at::kDouble);
  auto const as_double = [](frugal::Batch batch) {
    batch.data = batch.data.to(at::kDouble);
    return batch;
  };
  Tensors best;
  double best_loss = std::numeric_limits<double>::infinity();
  int best_epoch = 0;
  int epoch = 0;
  for (int since = 0; since < 3;) {
    ++epoch;
    hand->train();
    for (std::int64_t at = 0; at < 40; at += 8) {
      at::Tensor const x = train.data.narrow(0, at, 8).to(at::kDouble);
      at::cross_entropy_loss(hand->forward(x), train.target.narrow(0, at, 8)).backward();
      at::NoGradGuard const no_gradients;
      for (at::Tensor& parameter : hand->parameters()) {
        parameter.sub_(parameter.grad(), lr);
        parameter.mutable_grad().reset();
      }
    }
    hand->eval();
    at::NoGradGuard const no_gradients;
    at::Tensor const out = hand->forward(valid.data.to(at::kDouble));
    double const loss = at::cross_entropy_loss(out, valid.target).item<double>();
    ++since;
    if (loss < best_loss) {
      best_loss = loss;
      best = tensors_of(*hand);
      best_epoch = epoch;
      since = 0;
    }
  }
  REQUIRE(best_epoch == epoch - 3);

  auto const module = std::make_shared<Mlp>(Mlp::Shape{.norm = true});
  module->to(at::kDouble);
  frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 200},
                          Sgd{.lr = lr}, EarlyStop<3>{.restore_best = true}};
  frugal::Report const report =
      trainer.fit(frugal::TensorDataset(as_double(train), {.batch = 8, .shuffle = false}),
                  frugal::TensorDataset(as_double(valid), {.batch = 16, .shuffle = false}));
  CHECK(report.stopped_by == "EarlyStop");
  CHECK(report.epochs == static_cast<std::uint64_t>(epoch));
  CHECK(report.restored_step == static_cast<std::uint64_t>(best_epoch) * 5);
  CHECK(same_bits(tensors_of(*module), best));
}

/// Notes what the module holds in each validation, and stops the run at a training batch.
struct Look {
  std::vector<Tensors>* seen = nullptr;
  std::uint64_t dies_at = 0;
  std::uint64_t* count = nullptr;

  frugal::Loss operator()(std::shared_ptr<Mlp>& module, frugal::Batch const& batch) const {
    if (module->is_training()) {
      if (count && ++*count == dies_at) throw Gone{};
    } else if (seen && batch.data.size(0) == 3) {  // the last of 15 in batches of 4
      seen->push_back(tensors_of(*module));
    }
    return frugal::CrossEntropy{}(module, batch);
  }
};

/// The validation with the lowest loss: its place among all.
std::size_t best_of(frugal::Report const& report) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < report.validations.size(); ++i) {
    if (report.validations[i].metrics["loss"] < report.validations[best].metrics["loss"]) best = i;
  }
  return best;
}

template <class... Ps>
void holds_what_was_validated_best(Ps const&... policies) {
  std::vector<Tensors> seen;
  Outcome const outcome =
      run_with({}, Look{.seen = &seen}, Sgd{.lr = 1.0}, frugal::Validate<Every<2>>{},
               EarlyStop<100>{.restore_best = true}, policies...);
  REQUIRE(seen.size() == outcome.report.validations.size());
  std::size_t const best = best_of(outcome.report);
  REQUIRE(best + 1 < seen.size());
  CHECK(outcome.report.stopped_by.empty());
  CHECK(outcome.report.restored_step == outcome.report.validations[best].step);
  CHECK(same_bits(outcome.tensors, seen[best]));
}

TEST_CASE("a run that comes to its end restores as one does that runs out of patience") {
  holds_what_was_validated_best();
}

TEST_CASE("with Average, what was validated is the average, and that is what is restored") {
  holds_what_was_validated_best(frugal::Average<frugal::Ema<0.9>>{});
  holds_what_was_validated_best(frugal::Average<frugal::Ema<0.9>>{.validate = false});
}

using Saves = frugal::Checkpoint<Every<4>>;

template <class Checkpoint, class... Ps>
void survives_a_kill(Ps const&... policies) {
  TemporaryFolder const folder;
  auto const start = [&](std::string const& name, std::uint64_t dies_at) {
    return run({.folder = folder / name, .dies_at = dies_at}, Sgd{.lr = 1.0},
               frugal::Validate<Every<2>>{}, EarlyStop<100>{.restore_best = true}, Checkpoint{},
               policies...);
  };
  Outcome const whole = start("whole", 0);
  REQUIRE(whole.report.restored_step);
  REQUIRE(*whole.report.restored_step + 5 < whole.report.steps);
  for (std::uint64_t dies_at = 3; dies_at <= whole.report.steps; dies_at += 7) {
    CAPTURE(dies_at);
    std::string const name = std::to_string(dies_at);
    CHECK(start(name, dies_at).died);
    Outcome const resumed = start(name, 0);
    REQUIRE(resumed.report.resumed);
    CHECK(resumed.report.restored_step == whole.report.restored_step);
    CHECK(same_bits(resumed.tensors, whole.tensors));
  }
}

TEST_CASE("a run that is killed before or after its best validation ends with the same weights") {
  survives_a_kill<Saves>();
  survives_a_kill<frugal::Checkpoint<Every<4>, frugal::Async>>(frugal::Average<frugal::Ema<0.9>>{});
}

TEST_CASE("weights that a checkpoint rounds are restored as they were validated") {
  TemporaryFolder const folder;
  std::vector<Tensors> seen;
  std::uint64_t count = 0;
  using Half = frugal::Checkpoint<Every<4>, frugal::WeightsIn<frugal::BF16>>;
  auto const start = [&](std::uint64_t dies_at, std::uint64_t epochs) {
    count = 0;
    return run_with({.folder = folder.path(), .epochs = epochs},
                    Look{.seen = &seen, .dies_at = dies_at, .count = &count}, Sgd{.lr = 1.0},
                    frugal::Validate<Every<2>>{}, EarlyStop<100>{.restore_best = true}, Half{});
  };
  Outcome const first = start(0, 1);
  std::size_t const best = best_of(first.report);
  Tensors const validated = seen.at(best);
  // A finished run that is started again: all is read from the disk.
  Outcome const again = start(0, 1);
  REQUIRE(again.report.resumed);
  CHECK(again.report.restored_step == first.report.validations[best].step);
  CHECK(same_bits(again.tensors, validated));
}

TEST_CASE("a finished run has the best weights, and continues from the last ones") {
  TemporaryFolder const folder;
  auto const start = [&](std::string const& name, std::uint64_t epochs) {
    return run({.folder = folder / name, .epochs = epochs}, Sgd{.lr = 1.0},
               frugal::Validate<Every<2>>{}, EarlyStop<100>{.restore_best = true}, Saves{});
  };
  Outcome const first = start("in two parts", 2);
  Outcome const again = start("in two parts", 2);
  CHECK(again.losses.empty());
  CHECK(again.report.restored_step == first.report.restored_step);
  CHECK(same_bits(again.tensors, first.tensors));
  Outcome const longer = start("in two parts", 3);
  Outcome const whole = start("in one", 3);
  CHECK(longer.losses.size() == 11);
  CHECK(longer.losses == std::vector<double>(whole.losses.end() - 11, whole.losses.end()));
  CHECK(same_bits(longer.tensors, whole.tensors));
}

TEST_CASE("a preempted run keeps its weights, from which it resumes") {
  TemporaryFolder const folder;
  std::stop_source stop;
  Tensors last;
  auto const module = std::make_shared<Mlp>();
  Spy const spy{.each_step = [&](frugal::Counters const& at) {
    last = tensors_of(*module);
    if (at.step == 20) stop.request_stop();
  }};
  frugal::Trainer trainer{
      module,
      frugal::CrossEntropy{},
      frugal::Settings{.run_dir = folder.path(), .epochs = 9, .stop = stop.get_token()},
      Sgd{.lr = 1.0},
      frugal::Validate<Every<2>>{},
      EarlyStop<100>{.restore_best = true},
      Saves{},
      spy};
  frugal::Report const report = trainer.fit(frugal::TensorDataset(samples(43), {.batch = 4}),
                                            frugal::TensorDataset(samples(15, 92)));
  REQUIRE(report.preempted);
  CHECK_FALSE(report.restored_step);
  CHECK(same_bits(tensors_of(*module), last));
}

TEST_CASE("where Rollback goes back, the best validation is still the best") {
  // A window with gradient 1 takes 1 from the weight; after the return it takes 0.5.
  std::vector<double> const curve{5, 4, 1, 3, 2, 2, 2, 2};
  std::size_t at = 0;
  int windows = 0;
  auto const module = std::make_shared<OneWeight>();
  Scripted const scripted{&curve, &at};
  auto const objective = [&](std::shared_ptr<OneWeight>& net, at::Tensor const& batch) {
    at::Tensor const loss = scripted(net, batch);
    return at::GradMode::is_enabled() && ++windows == 4 ? loss * std::nan("") : loss;
  };
  frugal::Trainer trainer{module,
                          objective,
                          frugal::Settings{.steps = 6},
                          Sgd{.lr = 1.0},
                          frugal::Validate<Every<1>>{},
                          EarlyStop<100>{.restore_best = true},
                          frugal::Rollback<Every<2>>{}};
  std::vector<at::Tensor> const data(10, at::zeros({1}));
  std::vector<at::Tensor> const one{at::zeros({1})};
  frugal::Report const report = trainer.fit(data, one);
  CHECK(at == 7);  // the third step is validated twice
  CHECK(report.restored_step == 3);
  CHECK(module->weight.item<double>() == -3);
}

TEST_CASE("weights that are not finite are not kept as the best, with one advice") {
  std::vector<double> const curve{5, 2, 1, 0.5, 3};
  std::size_t at = 0;
  auto const module = std::make_shared<OneWeight>();
  Scripted const scripted{&curve, &at};
  auto const objective = [&](std::shared_ptr<OneWeight>& net, at::Tensor const& batch) {
    if (at::GradMode::is_enabled()) {
      at::NoGradGuard const no_gradients;
      net->weight.nan_to_num_(0, 0, 0);
    }
    return scripted(net, batch);
  };
  Spy const spoils{.each_step = [&](frugal::Counters const& counters) {
    at::NoGradGuard const no_gradients;
    if (counters.step == 3 || counters.step == 4) module->weight.fill_(std::nan(""));
  }};
  frugal::Trainer trainer{module,
                          objective,
                          frugal::Settings{.epochs = 5},
                          Sgd{.lr = 1.0},
                          EarlyStop<100>{.restore_best = true},
                          spoils};
  std::vector<at::Tensor> const one{at::zeros({1})};
  frugal::Report const report = trainer.fit(one, one);
  CHECK(report.restored_step == 2);
  CHECK(module->weight.item<double>() == -2);
  std::string const begin = "EarlyStop: the weights of the best validation at step ";
  CHECK(advises(report, begin + "3 are not finite (tensor 'weight')"));
  CHECK_FALSE(advises(report, begin + "4"));
}

TEST_CASE("a run whose validations give no number keeps its weights, with a warning") {
  auto const nan = std::nan("");
  auto const report = run_script({nan, nan, nan}, EarlyStop<100>{.restore_best = true});
  CHECK_FALSE(report.restored_step);
  CHECK(advises(report, "EarlyStop: no validation gave a number"));
}

TEST_CASE("a resume may turn it on or off") {
  TemporaryFolder const folder;
  auto const start = [&](std::uint64_t epochs, bool restores) {
    return run({.folder = folder.path(), .epochs = epochs}, Sgd{.lr = 0.1},
               EarlyStop<100>{.restore_best = restores}, Saves{});
  };
  CHECK_FALSE(start(1, false).report.restored_step);
  Outcome const on = start(2, true);
  REQUIRE(on.report.restored_step);
  CHECK(*on.report.restored_step > 11);
  CHECK(advises(on.report, "the checkpoint has no weights of the best validation before it"));
  Outcome const off = start(3, false);
  REQUIRE(off.report.resumed);
  CHECK_FALSE(off.report.restored_step);
}

TEST_CASE("a checkpoint has the best weights by the names of the module's tensors") {
  TemporaryFolder const folder;
  Outcome const outcome =
      run({.folder = folder.path()}, Sgd{.lr = 1.0}, frugal::Validate<Every<2>>{},
          EarlyStop<100>{.restore_best = true}, Saves{});
  auto const file = frugal::Safetensors::open(newest_in(folder.path()) / "optimizer.safetensors");
  for (auto const& [name, tensor] : outcome.tensors) {
    CAPTURE(name);
    auto const saved = file.find("policies/EarlyStop/best_weights/tensors/" + name);
    REQUIRE(saved.has_value());
    CHECK(frugal::detail::tensor_in_file(*saved).equal(tensor));
  }
}

}  // namespace frugal_test::policy_early_stop_best_weights
