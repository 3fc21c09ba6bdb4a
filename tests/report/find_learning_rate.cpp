// SPDX-License-Identifier: Apache-2.0
#include "support/files.hpp"
#include "support/running.hpp"

#include <doctest/doctest.h>

#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/policy/skip_non_finite.hpp>
#include <frugal/policy/start_on.hpp>
#include <frugal/report/find_learning_rate.hpp>
#include <frugal/report/log.hpp>

#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

namespace frugal_test::watch_rate_curve {

using frugal::RateCurve;
using frugal::RatePoint;

nlohmann::json curves() {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/range_test.json");
  return nlohmann::json::parse(file).at("curves");
}

/// Rates of 1, 2, 4, ... for losses that are smoothed.
RateCurve curve_of(nlohmann::json const& which) {
  frugal::detail::Smoothing smoothing(which.at("keep"));
  RateCurve curve;
  for (double const loss : which.at("losses")) {
    curve.points.push_back({std::exp2(curve.points.size()), loss, smoothing.add(loss)});
  }
  curve.suggestion = frugal::detail::steepest(curve.points);
  return curve;
}

TEST_CASE("losses are smoothed, and their steepest fall is found, as with numpy") {
  for (auto const& which : curves()) {
    CAPTURE(which.at("name").get<std::string>());
    RateCurve const curve = curve_of(which);
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      CHECK(curve.points[i].smoothed ==
            doctest::Approx(which.at("smoothed")[i].get<double>()).epsilon(1e-12));
    }
    if (which.at("steepest").is_null()) {
      CHECK_FALSE(curve.suggestion);
    } else {
      CHECK(curve.suggestion == std::exp2(which.at("steepest").get<int>()));
    }
  }
}

TEST_CASE("a curve of one or two points has no steepest fall") {
  CHECK_FALSE(frugal::detail::steepest({}));
  CHECK_FALSE(frugal::detail::steepest({{1, 2, 2}}));
  CHECK_FALSE(frugal::detail::steepest({{1, 2, 2}, {2, 1, 1}}));
}

std::string text_of(RateCurve const& curve) {
  std::ostringstream out;
  out << curve;
  return out.str();
}

TEST_CASE("a drawing shows the loss over the rates, and marks the suggestion") {
  RateCurve curve;
  for (int i = 0; i <= 59; ++i) {
    double const loss = i < 30 ? 2 : i < 50 ? 1 + std::pow((50 - i) / 20.0, 3) : i - 49;
    curve.points.push_back({std::pow(10.0, i - 30), loss, loss});
  }
  curve.suggestion = curve.points[40].rate;
  CHECK(text_of(curve) ==
        "      2.1 |                                                    ^^^^^^^^\n"
        "          |*******************************                    *\n"
        "          |                               *\n"
        "          |\n"
        "          |                                *\n"
        "          |                                 *\n"
        "          |                                  *\n"
        "          |                                   *\n"
        "          |                                    **\n"
        "          |                                      **\n"
        "          |                                        ***\n"
        "        1 |                                           ********\n"
        "          +------------------------------------------------------------\n"
        "           1e-30                                                  1e+29\n"
        "                                                   ^ 1e+10: the loss falls fastest\n");
}

TEST_CASE("a curve without a fall says so, and one without a step too") {
  RateCurve curve;
  CHECK(text_of(curve) == "no step was made\n");
  curve.points = {{1, 2, 2}, {2, 2, 2}};
  CHECK(text_of(curve).find("the loss never falls\n") != std::string::npos);
  curve.points.resize(1);
  CHECK(text_of(curve).find("the loss never falls\n") != std::string::npos);
}

}  // namespace frugal_test::watch_rate_curve

namespace frugal_test::trainer_find_learning_rate {

using namespace frugal_test::support;
using frugal::find_learning_rate;
using frugal::Optimize;
using frugal::RateRange;
using frugal::SGD;
using frugal::TensorDataset;

std::shared_ptr<Mlp> module() {
  return std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
}

at::Tensor generator_state() { return at::detail::getDefaultCPUGenerator().get_state(); }

// The test would begin on the CPU, and move in its middle.
static_assert(!frugal::detail::takes_part_in_range_test<frugal::StartOn<frugal::Cpu>>);
static_assert(frugal::detail::takes_part_in_range_test<frugal::SkipNonFinite>);

TEST_CASE("the losses are those of a hand-written loop whose rate grows by a constant factor") {
  frugal::Batch const rows = samples(32);
  RateRange const range{.from = 1e-3, .to = 1, .steps = 12, .smoothing = 0};
  auto const net = std::make_shared<Mlp>();
  frugal::Trainer trainer{net, frugal::CrossEntropy{}, frugal::Settings{},
                          Optimize<SGD>{.lr = 0.25}};
  auto const curve =
      find_learning_rate(trainer, TensorDataset(rows, {.batch = 8, .shuffle = false}), range);
  REQUIRE(curve.points.size() == 12);
  CHECK_FALSE(curve.diverged);

  Mlp byhand;
  for (std::int64_t step = 0; step < 12; ++step) {
    double const rate = 1e-3 * std::pow(1e3, static_cast<double>(step) / 11);
    auto const at = step * 8 % 32;
    at::Tensor const loss = at::cross_entropy_loss(byhand.forward(rows.data.narrow(0, at, 8)),
                                                   rows.target.narrow(0, at, 8));
    auto const& point = curve.points[static_cast<std::size_t>(step)];
    CHECK(point.rate == doctest::Approx(rate).epsilon(1e-12));
    CHECK(point.loss == doctest::Approx(loss.item<double>()).epsilon(1e-5));
    CHECK(point.smoothed == point.loss);
    byhand.zero_grad();
    loss.backward();
    at::NoGradGuard const no_gradients;
    for (at::Tensor& parameter : byhand.parameters()) parameter.sub_(parameter.grad(), rate);
  }
}

TEST_CASE("everything is restored: weights, buffers, modes, generators, and the run that follows") {
  auto const fit = [](bool test) {
    torch::manual_seed(3);
    auto const net = module();
    net->norm->eval();
    frugal::Trainer trainer{net, frugal::CrossEntropy{}, frugal::Settings{.epochs = 2},
                            Optimize<frugal::AdamW>{}, frugal::Schedule<frugal::Cosine>{}};
    TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
    if (test) {
      auto const before = tensors_of(*net);
      at::Tensor const generator = generator_state();
      auto const curve = find_learning_rate(trainer, train, {.steps = 30});
      CHECK(curve.points.size() > 10);
      CHECK(same_bits(before, tensors_of(*net)));
      CHECK(at::equal(generator, generator_state()));
      CHECK_FALSE(net->norm->is_training());
      CHECK(net->is_training());
      for (at::Tensor const& each : net->parameters()) CHECK_FALSE(each.grad().defined());
      CHECK(trainer.policy<frugal::kinds::optimizer>().lr == 1e-3);
    }
    auto const report = trainer.fit(train);
    return std::pair(tensors_of(*net), report.train_loss);
  };
  auto const plain = fit(false);
  auto const after = fit(true);
  CHECK(same_bits(plain.first, after.first));
  CHECK(plain.second == after.second);
}

TEST_CASE("the test ends where the loss diverges, and the suggestion lies before that") {
  auto const net = std::make_shared<Mlp>();
  frugal::Trainer trainer{net, frugal::MeanSquaredError{}, frugal::Settings{}, Optimize<SGD>{}};
  frugal::Batch rows = samples(64);
  rows.target = rows.data.slice(1, 0, 3) + 1;
  auto const curve =
      find_learning_rate(trainer, TensorDataset(rows, {.batch = 16}), {.from = 1e-4});
  CHECK(curve.diverged);
  CHECK(curve.points.size() < 100);
  REQUIRE(curve.suggestion);
  CHECK(*curve.suggestion > 1e-3);
  CHECK(*curve.suggestion < curve.points.back().rate);
}

/// The batch determines the loss.
struct Scripted {
  template <class Module>
  at::Tensor operator()(Module& net, at::Tensor const& loss) const {
    return loss.mean() + 0 * net->first->bias.sum();
  }
};

frugal::RateCurve scripted(std::vector<double> const& losses, RateRange const& range,
                           auto... policies) {
  std::vector<at::Tensor> batches;
  for (double const loss : losses) batches.push_back(at::full({1}, loss, at::kDouble));
  frugal::Trainer trainer{std::make_shared<Mlp>(), Scripted{}, frugal::Settings{}, Optimize<SGD>{},
                          policies...};
  return find_learning_rate(trainer, batches, range);
}

TEST_CASE("a loss that becomes NaN ends the curve, and one that is NaN at once is an error") {
  auto const curve = scripted({3, 2, 1, std::nan("")}, {.steps = 10});
  CHECK(curve.diverged);
  CHECK(curve.points.size() == 3);
  CHECK_THROWS_AS(scripted({std::nan("")}, {.steps = 10}), frugal::NonFiniteLossError);
}

TEST_CASE("with SkipNonFinite a broken sample is no part of the curve, and no divergence") {
  frugal::Batch bad = samples(64);
  bad.data = bad.data.clone();
  bad.data.narrow(0, 24, 8).fill_(std::numeric_limits<float>::quiet_NaN());
  RateRange const range{.from = 1e-4, .to = 1e-1, .steps = 20};
  auto const curve_of = [&](auto const&... policies) {
    frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, frugal::Settings{},
                            Optimize<SGD>{.lr = 0.25}, policies...};
    return find_learning_rate(trainer, TensorDataset(bad, {.batch = 8, .shuffle = false}), range);
  };
  CHECK(curve_of().diverged);
  frugal::RateCurve const curve = curve_of(frugal::SkipNonFinite{});
  CHECK_FALSE(curve.diverged);
  REQUIRE(curve.points.size() == 20);
  for (auto const& point : curve.points) CHECK(std::isfinite(point.loss));
  // Every window is bad from some rate on.
  RateRange const far{.from = 1, .to = 1e30, .steps = 20};
  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::MeanSquaredError{}, frugal::Settings{},
                          Optimize<SGD>{.lr = 0.25}, frugal::SkipNonFinite{.most_skips = 4}};
  frugal::Batch const rows = samples(32);
  TensorDataset data(rows.data, at::one_hot(rows.target, 3).to(at::kFloat),
                     {.batch = 8, .shuffle = false});
  CHECK(find_learning_rate(trainer, data, far).diverged);
}

TEST_CASE("a loss diverges at a multiple of the lowest smoothed one") {
  RateRange const range{.steps = 10, .smoothing = 0, .runs_away = 2};
  CHECK(scripted({3, 2, 1, 1.9, 1, 2.1, 1, 1, 1, 1}, range).points.size() == 6);
  // Below zero: as far above the lowest as that is from zero.
  CHECK(scripted({-1, -2, -0.5, 0.1, 0, 0, 0, 0, 0, 0}, range).points.size() == 4);
  CHECK(scripted({3, 2, 1, 1.9, 1, 1.9, 1, 1, 1, 1}, range).points.size() == 10);
}

TEST_CASE("a step is a window, and its loss the window's mean") {
  auto const curve =
      scripted({1, 2, 3, 4, 5, 6}, {.steps = 10, .smoothing = 0}, frugal::Accumulate<2>{});
  REQUIRE(curve.points.size() >= 3);
  CHECK(curve.points[0].loss == 1.5);
  CHECK(curve.points[1].loss == 3.5);
  CHECK(curve.points[2].loss == 5.5);
}

TEST_CASE("a micro-batch of weight 0 is not in the curve, though its loss is NaN") {
  auto const curve = [](bool with_nothing) {
    int calls = 0;
    auto const objective = [&calls, with_nothing](std::shared_ptr<Mlp>& net,
                                                  frugal::Batch const& batch) {
      frugal::Loss loss = frugal::CrossEntropy{}(net, batch);
      if (++calls % 2 == 0) {
        loss = {.value = loss.value * (with_nothing ? std::nan("") : 0.0), .weight = 0.0};
      }
      return loss;
    };
    frugal::Trainer trainer{std::make_shared<Mlp>(), objective, frugal::Settings{}, Optimize<SGD>{},
                            frugal::Accumulate<2>{}};
    auto const found = frugal::find_learning_rate(
        trainer, frugal::TensorDataset(samples(64), {.batch = 4}), {.steps = 20});
    std::vector<double> losses;
    for (auto const& point : found.points) losses.push_back(point.loss);
    return losses;
  };
  std::vector<double> const losses = curve(true);
  CHECK(losses.size() > 5);
  CHECK(losses == curve(false));
}

TEST_CASE("nothing is written, logged or validated") {
  TemporaryFolder const folder;
  frugal::Trainer trainer{
      module(),        frugal::CrossEntropy{},          frugal::Settings{.run_dir = folder / "run"},
      Optimize<SGD>{}, frugal::Log<frugal::Every<1>>{}, frugal::ClipNorm<>{}};
  static_cast<void>(find_learning_rate(trainer, TensorDataset(samples(32), {.batch = 4})));
  CHECK_FALSE(std::filesystem::exists(folder / "run"));
}

TEST_CASE("after an error everything is restored, too") {
  int calls = 0;
  auto const failing = [&](std::shared_ptr<Mlp>& net, frugal::Batch const& batch) {
    if (++calls == 5) throw std::runtime_error("in the middle");
    return at::cross_entropy_loss(net->forward(batch.data), batch.target);
  };
  auto const net = module();
  frugal::Trainer trainer{net, failing, frugal::Settings{}, Optimize<SGD>{}};
  auto const before = tensors_of(*net);
  at::Tensor const generator = generator_state();
  CHECK_THROWS_AS(find_learning_rate(trainer, TensorDataset(samples(32), {.batch = 4})),
                  std::runtime_error);
  CHECK(same_bits(before, tensors_of(*net)));
  CHECK(at::equal(generator, generator_state()));
}

TEST_CASE("invalid ranges are refused before anything is changed") {
  for (RateRange const& range :
       {RateRange{.from = 0}, RateRange{.from = -1}, RateRange{.from = 1, .to = 1},
        RateRange{.from = 2, .to = 1}, RateRange{.from = std::nan("")},
        RateRange{.to = std::numeric_limits<double>::infinity()}, RateRange{.steps = 9},
        RateRange{.smoothing = 1}, RateRange{.smoothing = -0.1}, RateRange{.runs_away = 1}}) {
    CHECK_THROWS_AS(scripted({1}, range), frugal::SettingsError);
  }
  frugal::Trainer trainer{module(), frugal::CrossEntropy{}, frugal::Settings{},
                          Optimize<SGD>{.lr = 0}};
  CHECK_THROWS_AS(find_learning_rate(trainer, TensorDataset(samples(8))), frugal::SettingsError);
}

}  // namespace frugal_test::trainer_find_learning_rate
