// SPDX-License-Identifier: Apache-2.0
// needs: recipes
#include <doctest/doctest.h>

#include <frugal/compare.hpp>
#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include <boost/hana/filter.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace frugal_test::compare_compare {

using namespace support;
namespace fr = frugal;
namespace hana = boost::hana;

using Plain = fr::Recipe<fr::Optimize<fr::AdamW>>;
using Rounded = Plain::with<fr::Precision<fr::BF16>>;
using Clipped = Plain::with<fr::ClipNorm<>>;

/// Weights from LibTorch's generator, so that they depend on the seed.
torch::nn::Linear make() { return torch::nn::Linear(6, 3); }

struct Data {
  fr::TensorDataset train{samples(64).data, samples(64).target, {.batch = 8}};
  fr::TensorDataset valid{
      samples(32, 95).data, samples(32, 95).target, {.batch = 16, .shuffle = false}};
};

auto job_of(Data& data, fr::CompareSettings settings) {
  return fr::CompareJob{make,       fr::CrossEntropy{},  data.train,
                        data.valid, std::move(settings), fr::Validate<fr::Accuracy>{}};
}

TEST_CASE("a recipe that is listed twice ends in the same bits for each seed, under two names") {
  Data data;
  fr::Comparison const found =
      fr::compare<Plain, Plain>(job_of(data, {.settings = {.epochs = 2, .seed = 3}, .repeats = 2}));
  REQUIRE(found.rows.size() == 2);
  CHECK(found.rows[0].name == "AdamW");
  CHECK(found.rows[1].name == "AdamW (2)");
  REQUIRE(found.rows[0].trials.size() == 2);
  CHECK(found.rows[1].same_weights(found.rows[0]));
  CHECK(found.rows[0].trials[0].seed == 3);
  CHECK(found.rows[0].trials[1].seed == 4);
  CHECK(found.rows[0].trials[0].weights != found.rows[0].trials[1].weights);
  CHECK(found.rows[0].trials[0].samples == 128);
}

TEST_CASE("each trial ends in the bits of a trainer that is written by hand") {
  Data data;
  fr::Comparison const found =
      fr::compare<Clipped>(job_of(data, {.settings = {.epochs = 2, .seed = 7}, .repeats = 1}));
  torch::manual_seed(7);
  fr::Trainer<torch::nn::Linear, fr::CrossEntropy, Clipped, fr::Validate<fr::Accuracy>> trainer{
      make(), {.epochs = 2, .seed = 7}};
  fr::Report const report = trainer.fit(data.train, data.valid);
  REQUIRE(found.rows[0].trials.size() == 1);
  fr::Trial const& trial = found.rows[0].trials[0];
  CHECK(trial.weights == fr::hash_of_tensors(*trainer.module()));
  CHECK(trial.metric("accuracy") == report.last()["accuracy"]);
  CHECK(trial.metric("loss") == report.last()["loss"]);
  CHECK(trial.train_loss == report.train_loss);
}

TEST_CASE(
    "a recipe that averages is judged by its average, whether its last step validates or not") {
  Data data;
  using Averaged = Plain::with<fr::Average<>>;
  for (std::uint64_t const steps : {16U, 17U}) {  // 8 per epoch, and a validation at its end
    CAPTURE(steps);
    fr::Comparison const found = fr::compare<Averaged>(
        job_of(data, {.settings = {.steps = steps, .seed = 7}, .repeats = 1}), [](auto& trainer) {
          trainer.optimizer().lr = 0.5;
          trainer.average().at_end = fr::Weights::trained;
        });
    torch::manual_seed(7);
    torch::nn::Linear net = make();
    fr::Trainer<torch::nn::Linear, fr::CrossEntropy, Averaged, fr::Validate<fr::Accuracy>> trainer{
        net, {.steps = steps, .seed = 7}};
    trainer.optimizer().lr = 0.5;
    static_cast<void>(trainer.fit(data.train));
    trainer.average().copy_into(net);
    at::NoGradGuard const no_gradients;
    double const loss =
        at::cross_entropy_loss(net->forward(data.valid.data()), data.valid.target()).item<double>();
    REQUIRE(found.rows[0].trials.size() == 1);
    CHECK(*found.rows[0].trials[0].metric("loss") == doctest::Approx(loss).epsilon(1e-6));
    CHECK(found.rows[0].trials[0].weights == fr::hash_of_tensors(*net));
  }
}

TEST_CASE("a recipe that restores its best weights is judged by them, wherever it ends") {
  Data data;
  using Stops = Plain::with<fr::EarlyStop<fr::Patience<9>>>;
  std::vector<double> losses;
  fr::Comparison const found = fr::compare<Stops>(
      job_of(data, {.settings = {.epochs = 6, .seed = 7}, .repeats = 1}), [](auto& trainer) {
        trainer.optimizer().lr = 3;  // jumps about
        trainer.early_stop().restore_best = true;
      });
  torch::manual_seed(7);
  fr::Trainer<torch::nn::Linear, fr::CrossEntropy, Stops, fr::Validate<fr::Accuracy>> trainer{
      make(), {.epochs = 6, .seed = 7}};
  trainer.optimizer().lr = 3;
  fr::Report const report = trainer.fit(data.train, data.valid);
  for (auto const& each : report.validations) losses.push_back(each.metrics["loss"]);
  double const best = *std::ranges::min_element(losses);
  REQUIRE(best != losses.back());
  REQUIRE(found.rows[0].trials.size() == 1);
  CHECK(found.rows[0].trials[0].metric("loss") == best);
}

TEST_CASE("the order of the recipes changes no result except time") {
  Data data;
  fr::CompareSettings const settings{.settings = {.epochs = 1, .seed = 1}, .repeats = 2};
  fr::Comparison const one = fr::compare<Plain, Rounded, Clipped>(job_of(data, settings));
  fr::Comparison const other = fr::compare<Clipped, Plain, Rounded>(job_of(data, settings));
  for (auto const& row : one.rows) {
    CAPTURE(row.name);
    CHECK_FALSE(row.failed());
    CHECK(row.same_weights(other[row.name]));
    for (std::size_t i = 0; i < row.trials.size(); ++i) {
      CHECK(row.trials[i].metrics == other[row.name].trials[i].metrics);
      CHECK(row.trials[i].peak_bytes == other[row.name].trials[i].peak_bytes);
    }
  }
  CHECK_FALSE(one["AdamW + BF16"].same_weights(one["AdamW"]));
}

TEST_CASE("a product is compared without its illegal recipes, which are named") {
  Data data;
  // BF16 rounds, and an audit compares bits.
  fr::Comparison const found =
      fr::compare(fr::product(Plain{}, fr::Axis<fr::Precision<fr::FP32>, fr::Precision<fr::BF16>>{},
                              fr::Axis<fr::Without, fr::Audit<fr::BitExact>>{}),
                  job_of(data, {.settings = {.steps = 2}, .repeats = 1}));
  CHECK(found.rows.size() == 3);
  REQUIRE(found.dropped.size() == 1);
  CHECK(found.dropped[0].fault.starts_with("frugal: Audit<BitExact> needs FP32"));
  std::ostringstream text;
  text << found;
  CHECK(text.str().find("is not possible. frugal: Audit<BitExact> needs FP32") !=
        std::string::npos);
}

TEST_CASE(
    "a filtered product is compared in its order, and the first recipe left is the baseline") {
  Data data;
  constexpr auto all =
      fr::product(Plain{}, fr::Axis<fr::Precision<fr::FP32>, fr::Precision<fr::BF16>>{},
                  fr::Axis<fr::Without, fr::ClipNorm<>>{});
  constexpr auto kept = hana::filter(all, fr::has_kind<fr::kinds::clip>);
  fr::Comparison const found =
      fr::compare(kept, job_of(data, {.settings = {.steps = 2}, .repeats = 1}));
  REQUIRE(found.rows.size() == 2);
  CHECK(found.baseline().name == "AdamW + ClipNorm");
  CHECK(found.rows[1].name == "AdamW + BF16 + ClipNorm");
  CHECK(found.dropped.empty());
}

TEST_CASE("a run ends at the target, and its samples, seconds and dollars are those up to there") {
  Data data;
  fr::Comparison const found =
      fr::compare<Plain>(job_of(data, {.settings = {.epochs = 50, .seed = 1},
                                       .target = {.metric = "accuracy", .at_least = 0.0},
                                       .repeats = 2,
                                       .dollars_per_hour = 36}));
  auto const& row = found.baseline();
  REQUIRE(row.reached() == 2);
  CHECK(row.samples_to_target()->median == 64);  // the first validation is after one epoch
  CHECK(row.trials[0].stopped_by == "CompareWatch");
  CHECK(row.trials[0].samples == 64);
  REQUIRE(found.dollars(row));
  CHECK(found.dollars(row)->median == doctest::Approx(0.01 * row.seconds_to_target()->median));
  CHECK(row.seconds_to_target()->median > 0);
  CHECK(row.trials[0].reached->seconds <= row.trials[0].seconds);
}

TEST_CASE("with stop = false a run that reached its target goes on to its end") {
  Data data;
  fr::Comparison const found =
      fr::compare<Plain>(job_of(data, {.settings = {.epochs = 3},
                                       .target = {.metric = "loss", .at_most = 1e9, .stop = false},
                                       .repeats = 1}));
  CHECK(found.baseline().trials[0].samples == 192);
  CHECK(found.baseline().trials[0].reached->samples == 64);
}

TEST_CASE("a target that is not reached has no cost, and the waterfall says so") {
  Data data;
  fr::Comparison const found =
      fr::compare<Plain>(job_of(data, {.settings = {.epochs = 1},
                                       .target = {.metric = "accuracy", .at_least = 1.5},
                                       .repeats = 2,
                                       .dollars_per_hour = 1}));
  CHECK_FALSE(found.dollars(found.baseline()));
  CHECK_FALSE(found.baseline().samples_to_target());
  CHECK_THROWS_AS((void)found.levers_text(), fr::TargetError);
  std::ostringstream text;
  found.print(text, 1000);
  CHECK(text.str().find("reached in 0 of 2") != std::string::npos);
}

/// Throws in the forward pass under BF16 alone.
struct Picky {
  at::Tensor operator()(torch::nn::Linear& net, fr::Batch const& batch) const {
    at::Tensor const out = net->forward(batch.data);
    if (out.scalar_type() == at::kBFloat16) throw std::runtime_error("not in 16 bits\nand a stack");
    return at::cross_entropy_loss(out, batch.target);
  }
};

TEST_CASE("a recipe that throws has its error in its row, and the others are run") {
  Data data;
  fr::CompareJob const job{make, Picky{}, data.train, {.settings = {.steps = 3}, .repeats = 2}};
  fr::Comparison const found = fr::compare<Plain, Rounded, Clipped>(job);
  CHECK(found["AdamW"].trials.size() == 2);
  CHECK(found["AdamW + ClipNorm"].trials.size() == 2);
  CHECK(found["AdamW + BF16"].trials.empty());
  CHECK(found["AdamW + BF16"].error.find("not in 16 bits") != std::string::npos);
  std::ostringstream text;
  text << found;
  CHECK(text.str().find("'AdamW + BF16' failed: ") != std::string::npos);
  CHECK(found.json_text().find("\"error_occurred\": true") != std::string::npos);
}

TEST_CASE("a metric that no validation measures is the error of the row") {
  Data data;
  fr::Comparison const found = fr::compare<Plain>(job_of(
      data,
      {.settings = {.epochs = 1}, .target = {.metric = "f1", .at_least = 0.5}, .repeats = 1}));
  CHECK(found.baseline().error.find("no metric 'f1' was measured") != std::string::npos);
}

TEST_CASE("tune sets run-time settings of every recipe") {
  Data data;
  fr::Comparison const found =
      fr::compare<Plain>(job_of(data, {.settings = {.steps = 4}, .repeats = 1}),
                         [](auto& trainer) { trainer.optimizer().lr = 0; });
  fr::Comparison const trained =
      fr::compare<Plain>(job_of(data, {.settings = {.steps = 8}, .repeats = 1}),
                         [](auto& trainer) { trainer.optimizer().lr = 0; });
  CHECK(found.baseline().same_weights(trained.baseline()));
}

TEST_CASE("the peak counts weights, gradients and the optimizer's state of this trial alone") {
  Data data;
  auto const large = [] { return torch::nn::Linear(6, 30000); };
  struct Sum {
    at::Tensor operator()(torch::nn::Linear& net, fr::Batch const& batch) const {
      return net->forward(batch.data.slice(0, 0, 1)).mean();
    }
  };
  fr::CompareJob const job{large, Sum{}, data.train, {.settings = {.steps = 3}, .repeats = 2}};
  fr::Comparison const found = fr::compare<fr::Recipe<fr::Optimize<fr::SGD>>, Plain>(job);
  double const weights = 4.0 * 7 * 30000;
  // SGD without momentum has no state; AdamW has two tensors per weight.
  REQUIRE(found.rows[0].peak_bytes());
  CHECK(found.rows[0].peak_bytes()->median > 2 * weights);
  CHECK(found.rows[0].peak_bytes()->median < 3.5 * weights);
  CHECK(found.rows[1].peak_bytes()->median > 4 * weights);
  CHECK(found.rows[1].peak_bytes()->median < 5.5 * weights);
  CHECK(found.rows[0].trials[0].peak_bytes == found.rows[0].trials[1].peak_bytes);
}

TEST_CASE("each run has its own folder, and a folder with an earlier comparison is refused") {
  Data data;
  TemporaryFolder const folder;
  using Saves = Plain::with<fr::Checkpoint<fr::Every<2>>>;
  fr::CompareSettings const settings{.settings = {.run_dir = folder / "runs", .steps = 4},
                                     .repeats = 2};
  fr::Comparison const found = fr::compare<Saves>(job_of(data, settings));
  CHECK(found.baseline().error == "");
  CHECK(found.baseline().trials.size() == 2);
  CHECK(std::filesystem::is_directory(folder / "runs" / "1-repeat-2" / "checkpoints"));
  CHECK_THROWS_AS((void)fr::compare<Saves>(job_of(data, settings)), fr::SettingsError);
}

TEST_CASE("settings with which nothing can be compared are refused before anything is run") {
  Data data;
  auto const refused = [&](fr::CompareSettings const& settings) {
    CHECK_THROWS_AS((void)fr::compare<Plain>(job_of(data, settings)), fr::SettingsError);
  };
  refused({.repeats = 0});
  refused({.dollars_per_hour = -1});
  refused({.dollars_per_hour = std::numeric_limits<double>::infinity()});
  refused({.target = {.metric = "accuracy"}});
  refused({.target = {.metric = "accuracy", .at_least = 1, .at_most = 2}});
  refused({.target = {.metric = "", .at_least = 1}});
  refused({.target = {.metric = "loss", .at_most = std::nan("")}});
  fr::CompareJob const blind{
      make, fr::CrossEntropy{}, data.train, {.target = {.metric = "loss", .at_most = 1}}};
  CHECK_THROWS_AS((void)fr::compare<Plain>(blind), fr::SettingsError);
}

TEST_CASE("a target of the loss is refused for a row with another objective, and generators stay") {
  Data data;
  torch::manual_seed(3);
  at::Tensor const expected = torch::rand({4});
  torch::manual_seed(3);
  fr::Comparison const found = fr::compare<Plain, Clipped>(
      job_of(data,
             {.settings = {.steps = 2}, .target = {.metric = "loss", .at_most = 9}, .repeats = 1}),
      [](auto& trainer) {
        if constexpr (requires { trainer.template policy<fr::kinds::clip>().max_norm; }) {
          trainer.objective().label_smoothing = 0.25;
        }
      });
  CHECK(at::equal(torch::rand({4}), expected));
  int failed = 0;
  for (auto const& row : found.rows) {
    failed +=
        row.error.find("one target of the loss is not the same for both") != std::string::npos;
  }
  CHECK(failed == 1);
}

TEST_CASE("a row that is not there is an error that names those that are") {
  Data data;
  fr::Comparison const found =
      fr::compare<Plain>(job_of(data, {.settings = {.steps = 1}, .repeats = 1}));
  CHECK_THROWS_WITH_AS((void)found["SGD"], doctest::Contains("'AdamW'"), fr::SettingsError);
  // One step: its time is not known.
  CHECK_FALSE(found.baseline().step_seconds());
}

TEST_CASE("a stop request ends the comparison, and the table says so") {
  Data data;
  std::stop_source source;
  source.request_stop();
  fr::Comparison const found = fr::compare<Plain, Clipped>(
      job_of(data, {.settings = {.epochs = 1, .stop = source.get_token()}, .repeats = 2}));
  CHECK(found.interrupted);
  CHECK(found.rows[0].trials.empty());
  std::ostringstream text;
  text << found;
  CHECK(text.str().find("interrupted") != std::string::npos);
}

}  // namespace frugal_test::compare_compare
