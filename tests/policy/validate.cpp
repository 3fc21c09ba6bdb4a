// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/precision_recall.hpp>
#include <frugal/metrics/roc_auc.hpp>
#include <frugal/metrics/top_k.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/validate.hpp>

#include <algorithm>
#include <type_traits>

#include "support/scripted.hpp"

namespace frugal_test::policy_validate {

using namespace frugal_test::support;
using frugal::Accuracy;
using frugal::Epoch;
using frugal::Every;
using frugal::MicroBatch;
using frugal::Optimize;
using frugal::Sample;
using frugal::SanityBatches;
using frugal::SGD;
using frugal::TensorDataset;
using frugal::Token;
using frugal::Validate;

/// Steps at which a run of 3 epochs of 5 steps validates; batches of 4 and a ragged one of 2.
template <class V>
std::vector<std::uint64_t> validated_at(bool with_data = true) {
  Seen seen;
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 3},
                          Optimize<SGD>{},
                          V{},
                          Spy{.seen = &seen}};
  if (with_data) {
    auto const report = trainer.fit(TensorDataset(samples(18), {.batch = 4}),
                                    TensorDataset(samples(7, 92), {.batch = 4}));
    CHECK(report.validations.size() == seen.validations.size());
  } else {
    CHECK(trainer.fit(TensorDataset(samples(18), {.batch = 4})).validations.empty());
  }
  return seen.validated_at;
}

using Steps = std::vector<std::uint64_t>;

TEST_CASE("validation is once an epoch by default") {
  CHECK(validated_at<Validate<>>() == Steps{5, 10, 15});
}
TEST_CASE("metrics without a cadence are measured once an epoch, and options come in any order") {
  CHECK(validated_at<Validate<Accuracy>>() == Steps{5, 10, 15});
  CHECK(validated_at<Validate<Accuracy, Every<4>>>() == Steps{4, 8, 12});
  static_assert(frugal::detail::is_null<Validate<Every<1, Epoch>>>);
  static_assert(!frugal::detail::is_null<Validate<Accuracy>>);
  static_assert(std::same_as<Validate<Accuracy, Every<4>>::measures, frugal::list<Accuracy>>);
}
TEST_CASE("validation every two epochs leaves the odd ones out") {
  CHECK(validated_at<Validate<Every<2, Epoch>>>() == Steps{10});
}
TEST_CASE("validation counts steps across epochs") {
  CHECK(validated_at<Validate<Every<4>>>() == Steps{4, 8, 12});
}
TEST_CASE("validation in samples is at the first step that reaches or passes a multiple") {
  // Samples after each step: 4 8 12 16 18 | 22 26 30 34 36 | 40 44 48 52 54.
  CHECK(validated_at<Validate<Every<10, Sample>>>() == Steps{3, 6, 8, 11, 14});
  CHECK(validated_at<Validate<Every<10, Token>>>() == Steps{3, 6, 8, 11, 14});
}
TEST_CASE("validation in micro-batches counts them") {
  CHECK(validated_at<Validate<Every<6, MicroBatch>>>() == Steps{6, 12});
}
TEST_CASE("without validation data nothing is validated") {
  CHECK(validated_at<Validate<Every<1>>>(false).empty());
}

TEST_CASE("the loss and the accuracy are those of the whole set, ragged last batch included") {
  auto const module = std::make_shared<Mlp>();
  frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 3},
                          Optimize<SGD>{.lr = 0.1}, Validate<Every<1, Epoch>, Accuracy>{}};
  frugal::Batch const set = samples(23, 92);
  auto const report =
      trainer.fit(TensorDataset(samples(40), {.batch = 8}), TensorDataset(set, {.batch = 5}));
  at::NoGradGuard const no_gradients;
  at::Tensor const logits = module->forward(set.data);
  double const loss = at::cross_entropy_loss(logits, set.target).item<double>();
  double const right = logits.argmax(1).eq(set.target).sum().item<double>();
  CHECK(report.last()["loss"] == doctest::Approx(loss).epsilon(1e-6));
  CHECK(report.last()["accuracy"] == right / 23);
  CHECK(report.validations.size() == 3);
  CHECK(report.validations[1].epoch == 2);
  CHECK(report.validations[1].step == 10);
}

TEST_CASE("accuracy of an objective that returns a bare loss says what to return") {
  auto const bare = [](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    return at::cross_entropy_loss(module->forward(batch.data), batch.target);
  };
  frugal::Trainer trainer{std::make_shared<Mlp>(), bare, frugal::Settings{}, Optimize<SGD>{},
                          Validate<Every<1>, Accuracy>{}};
  CHECK_THROWS_AS(trainer.fit(TensorDataset(samples(8)), TensorDataset(samples(8))),
                  frugal::MetricError);
}

/// Records the module's modes during a validation.
struct Modes {
  std::vector<bool>* training;
  std::vector<bool>* gradients;
  template <class Module>
  frugal::Loss operator()(Module& module, frugal::Batch const& batch) const {
    if (!at::GradMode::is_enabled()) {
      for (auto const& part : module->modules()) training->push_back(part->is_training());
    }
    gradients->push_back(at::GradMode::is_enabled());
    return frugal::CrossEntropy{}(module, batch);
  }
};

TEST_CASE("every part evaluates without gradients, and each part's mode is restored") {
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.5, .norm = true});
  module->norm->eval();
  at::Tensor const mean = module->norm->running_mean.clone();
  std::vector<bool> training;
  std::vector<bool> gradients;
  frugal::Trainer trainer{module, Modes{&training, &gradients}, frugal::Settings{}, Optimize<SGD>{},
                          Validate<Every<1>>{}};
  static_cast<void>(
      trainer.fit(TensorDataset(samples(16), {.batch = 8}), TensorDataset(samples(8, 92))));
  CHECK((training == std::vector<bool>(training.size(), false)));
  CHECK(training.size() == 3 * 5);
  // One batch is tried before the first step.
  CHECK((gradients == std::vector<bool>{false, true, false, true, false}));
  CHECK(module->is_training());
  CHECK(module->dropout->is_training());
  CHECK_FALSE(module->norm->is_training());
  CHECK(at::equal(module->norm->running_mean, mean));
}

TEST_CASE("a validation that throws restores each part's mode too") {
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.norm = true});
  module->norm->eval();
  frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{}, Optimize<SGD>{},
                          Validate<Every<1>>{}};
  frugal::Batch wrong = samples(8);
  wrong.data = wrong.data.slice(1, 0, 3).contiguous();
  CHECK_THROWS_WITH_AS(
      trainer.fit(TensorDataset(samples(8)), TensorDataset(wrong)),
      doctest::Contains("(in the validation data, tried before the first step, epoch 0, step 0"),
      frugal::ShapeError);
  CHECK(module->is_training());
  CHECK_FALSE(module->norm->is_training());
  CHECK(at::GradMode::is_enabled());
}

/// The final tensors of a run with dropout and normalization.
template <class... Valid>
std::map<std::string, at::Tensor> trained(Valid&&... valid) {
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.5, .norm = true});
  frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 2},
                          Optimize<SGD>{.lr = 0.1, .momentum = 0.9}, Validate<Every<2>>{}};
  static_cast<void>(
      trainer.fit(TensorDataset(samples(30), {.batch = 8, .shuffle = true}), valid...));
  for (at::Tensor const& parameter : module->parameters()) CHECK_FALSE(parameter.grad().defined());
  return tensors_of(*module);
}

TEST_CASE("a run that validates ends with the same bits as one that does not") {
  CHECK(
      same_bits(trained(), trained(TensorDataset(samples(20, 92), {.batch = 8, .shuffle = true}))));
}

TEST_CASE("a validation loss that is NaN or infinite is reported, not thrown") {
  double const infinity = std::numeric_limits<double>::infinity();
  auto const report = run_script({0.5, std::nan(""), infinity, 0.25});
  REQUIRE(report.validations.size() == 4);
  CHECK(std::isnan(report.validations[1].metrics["loss"]));
  CHECK(report.validations[2].metrics["loss"] == infinity);
  CHECK(report.last()["loss"] == 0.25);
}

/// Counts forward passes without gradients, until the first step and in all.
struct Counting {
  int* before;
  int* all;
  bool* has_trained;
  template <class Module>
  frugal::Loss operator()(Module& module, frugal::Batch const& batch) const {
    if (at::GradMode::is_enabled()) {
      *has_trained = true;
    } else {
      ++*all;
      if (!*has_trained) ++*before;
    }
    return frugal::CrossEntropy{}(module, batch);
  }
};

/// Without a size; it only goes forward from where it was sought.
struct Unsized {
  std::vector<frugal::Batch> batches;
  std::size_t at = 0;
  void seek(frugal::Cursor const&) { at = 0; }
  std::optional<frugal::Batch> next() {
    return at == batches.size() ? std::nullopt : std::optional(batches[at++]);
  }
};

TEST_CASE("two batches of each validation source are tried before the first step, or none") {
  auto const check = []<std::size_t Sanity>(std::integral_constant<std::size_t, Sanity>) {
    int before = 0, all = 0;
    bool has_trained = false;
    frugal::Trainer trainer{std::make_shared<Mlp>(), Counting{&before, &all, &has_trained},
                            frugal::Settings{}, Optimize<SGD>{},
                            Validate<Accuracy, SanityBatches<Sanity>>{}};
    frugal::TensorDataset train(samples(8), {.batch = 4});
    Unsized one{{samples(3, 93)}};  // of a single batch
    auto const report =
        trainer.fit(train, TensorDataset(samples(20, 92), {.batch = 4}), frugal::named<"one">(one));
    CHECK(before == (Sanity == 0 ? 0 : 2 + 1));
    CHECK(all == before + 5 + 1);
    REQUIRE(report.validations.size() == 1);
    CHECK(report.validations[0].step == 2);
  };
  check(std::integral_constant<std::size_t, 2>{});
  check(std::integral_constant<std::size_t, 0>{});
}

TEST_CASE(
    "a metric that does not fit is an error before the first step, of any batch that is tried") {
  std::vector<frugal::Batch> valid{samples(4), samples(4)};
  valid[1].target = valid[1].target.to(at::kDouble);  // probabilities need another shape
  int before = 0, all = 0;
  bool has_trained = false;
  auto const module = std::make_shared<Mlp>();
  auto const untrained = tensors_of(*module);
  frugal::Trainer trainer{module, Counting{&before, &all, &has_trained}, frugal::Settings{},
                          Optimize<SGD>{}, Validate<frugal::TopK<5>>{}};
  // Three classes.
  CHECK_THROWS_AS(trainer.fit(TensorDataset(samples(8)), TensorDataset(samples(8))),
                  frugal::MetricError);
  CHECK_FALSE(has_trained);
  CHECK_THROWS_WITH_AS(trainer.fit(TensorDataset(samples(8)), frugal::named<"shifted">(valid)),
                       doctest::Contains("in the validation 'shifted' data, tried before"),
                       frugal::Error);
  CHECK_FALSE(has_trained);
  CHECK(same_bits(tensors_of(*module), untrained));
}

/// A module whose evaluation draws random numbers and changes a buffer.
struct Restless : torch::nn::Module {
  Restless() : inner(register_module("inner", std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.5}))) {
    calls = register_buffer("calls", at::zeros({}));
  }
  at::Tensor forward(at::Tensor const& data) {
    calls.add_(1);
    if (!is_training()) at::rand({5});
    return inner->forward(data);
  }
  std::shared_ptr<Mlp> inner;
  at::Tensor calls;
};

TEST_CASE("a trial leaves no trace in the run: generators, buffers, the training source itself") {
  auto const run = []<class Validation>(Validation const validation) {
    auto const module = std::make_shared<Restless>();
    frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 2},
                            Optimize<SGD>{.lr = 0.1}, validation};
    TensorDataset data(samples(30), {.batch = 8, .shuffle = true});
    auto const report = trainer.fit(data, data);
    CHECK(report.samples == 60);
    return tensors_of(*module);
  };
  CHECK(same_bits(run(Validate<>{}), run(Validate<SanityBatches<0>>{})));
}

TEST_CASE("a metric that two batches do not define is no error, and NaN is not the best") {
  // Sorted: the first batches have class 0 alone.
  frugal::Batch valid = samples(64, 92, 6, 2);
  at::Tensor const order = valid.target.argsort();
  valid = {valid.data.index_select(0, order), valid.target.index_select(0, order)};
  frugal::Trainer trainer{std::make_shared<Mlp>(Mlp::Shape{.classes = 2}), frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 1}, Optimize<SGD>{},
                          Validate<frugal::RocAuc<>>{}};
  auto const report =
      trainer.fit(TensorDataset(samples(16, 91, 6, 2)), TensorDataset(valid, {.batch = 4}));
  CHECK_FALSE(std::isnan(report.last()["roc_auc"]));
  CHECK(report.warnings.empty());
  // A set of one class has no curve at all: the run goes to its end.
  auto const one = trainer.fit(
      TensorDataset(samples(16, 91, 6, 2)),
      std::vector<frugal::Batch>{{valid.data.narrow(0, 0, 4), at::zeros({4}, at::kLong)}});
  CHECK(one.epochs == 1);
  CHECK(std::isnan(one.last()["roc_auc"]));
  CHECK(std::count_if(one.warnings.begin(), one.warnings.end(), [](std::string const& line) {
          return line.starts_with("validation: roc_auc is NaN: 0 of 4 labels are of class 1");
        }) == 1);
}

TEST_CASE("a metric that fails in the middle of a run is NaN with advice, and the run goes on") {
  std::vector<frugal::Batch> valid(3, samples(4));
  valid[2].target = at::full({4}, 7, at::kLong);  // not among the batches that are tried
  auto const objective = [](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    at::Tensor logits = module->forward(batch.data);
    return frugal::Loss{.value = logits.sum(), .weight = {}, .output = logits};
  };
  frugal::Trainer trainer{std::make_shared<Mlp>(), objective, frugal::Settings{.epochs = 2},
                          Optimize<SGD>{}, Validate<frugal::F1Score<frugal::Macro>>{}};
  auto const report = trainer.fit(TensorDataset(samples(8)), valid);
  CHECK(report.epochs == 2);
  CHECK(std::isnan(report.last()["f1_macro"]));
  CHECK_FALSE(std::isnan(report.last()["loss"]));
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("4 labels name no class") != std::string::npos);
  // Nothing was paid for an evaluation: it throws.
  CHECK_THROWS_AS(trainer.evaluate(valid), frugal::MetricError);
}

TEST_CASE("a batch of weight 0 is not read in a validation, though its loss is NaN") {
  auto const objective = [](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    // A mean over no label, as at::cross_entropy_loss gives it.
    auto const labels = batch.target.ne(-100).sum().item<double>();
    return frugal::Loss{.value = at::cross_entropy_loss(module->forward(batch.data), batch.target),
                        .weight = labels};
  };
  std::vector<frugal::Batch> valid(2, samples(6, 92));
  valid[1].target = at::full({6}, -100, at::kLong);
  frugal::Trainer trainer{std::make_shared<Mlp>(), objective, frugal::Settings{}, Optimize<SGD>{}};
  double const with = trainer.fit(TensorDataset(samples(8)), valid).last()["loss"];
  double const without = trainer.evaluate(std::vector<frugal::Batch>{valid[0]})["loss"];
  CHECK(with == without);
}

struct Empty {
  void seek(frugal::Cursor const&) {}
  std::optional<frugal::Batch> next() { return std::nullopt; }
};

TEST_CASE("validation data without a batch is an error that says which source it was") {
  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, frugal::Settings{},
                          Optimize<SGD>{}};
  try {
    static_cast<void>(trainer.fit(TensorDataset(samples(8)), Empty{}));
    FAIL("no error came");
  } catch (frugal::EmptySourceError const& error) {
    CHECK(error.fault().what == "the validation source has no batch");
  }
}

TEST_CASE("a cadence that the run does not come to is a warning before the first step") {
  using frugal::RunLimits;
  RunLimits const run{
      .epochs = 3, .steps_per_epoch = 5, .total_steps = 15, .samples_per_epoch = 18};
  CHECK(Validate<Every<15>>{}.outlook(run).empty());
  CHECK(Validate<Every<16>>{}.outlook(run).starts_with(
      "it measures at step 16, and the run ends at step 15: nothing is measured"));
  CHECK(Validate<Every<3, Epoch>>{}.outlook(run).empty());
  CHECK(Validate<Every<4, Epoch>>{}.outlook(run).starts_with(
      "it measures after 4 epochs, and the run completes 3"));
  CHECK(Validate<Every<54, Sample>>{}.outlook(run).empty());
  CHECK(Validate<Every<55, Sample>>{}.outlook(run).starts_with(
      "it measures after 55 samples, and the run trains on at most 54"));
  // Of unknown length: nothing to say.
  CHECK(Validate<Every<16>>{}.outlook({.epochs = 3}).empty());
  CHECK(Validate<Every<55, Sample>>{}.outlook({.epochs = 3}).empty());
  CHECK(Validate<>{}.outlook({}).empty());
  CHECK_FALSE(Validate<Every<5>>{}.outlook({.steps = 4, .total_steps = 4}).empty());

  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{},
                          frugal::Settings{.steps = 4}, Optimize<SGD>{}};
  TensorDataset train(samples(18), {.batch = 4});
  auto const with = trainer.fit(train, TensorDataset(samples(7, 92)));
  REQUIRE(with.warnings.size() == 1);
  CHECK(
      with.warnings[0].starts_with("Validate: it measures after 1 epoch, and the run completes 0"));
  trainer.settings().seed = 1;
  CHECK(trainer.fit(train).warnings.empty());
}

}  // namespace frugal_test::policy_validate
