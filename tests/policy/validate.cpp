// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/optimize/sgd.hpp>
#include <frugal/policy/validate.hpp>

#include "support/scripted.hpp"

namespace frugal_test::policy_validate {

using namespace frugal_test::support;
using frugal::Accuracy;
using frugal::Epoch;
using frugal::Every;
using frugal::MicroBatch;
using frugal::Optimize;
using frugal::Resident;
using frugal::Sample;
using frugal::SGD;
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
    auto const report =
        trainer.fit(Resident(samples(18), {.batch = 4}), Resident(samples(7, 92), {.batch = 4}));
    CHECK(report.validations.size() == seen.validations.size());
  } else {
    CHECK(trainer.fit(Resident(samples(18), {.batch = 4})).validations.empty());
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
  static_assert(std::same_as<Validate<Accuracy, Every<4>>::metrics, frugal::list<Accuracy>>);
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
  auto const report = trainer.fit(Resident(samples(40), {.batch = 8}), Resident(set, {.batch = 5}));
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
  CHECK_THROWS_AS(trainer.fit(Resident(samples(8)), Resident(samples(8))), frugal::MetricError);
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
  static_cast<void>(trainer.fit(Resident(samples(16), {.batch = 8}), Resident(samples(8, 92))));
  CHECK((training == std::vector<bool>(training.size(), false)));
  CHECK(training.size() == 2 * 5);
  CHECK((gradients == std::vector<bool>{true, false, true, false}));
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
  CHECK_THROWS_AS(trainer.fit(Resident(samples(8)), Resident(wrong)), frugal::ShapeError);
  CHECK(module->is_training());
  CHECK_FALSE(module->norm->is_training());
  CHECK(at::GradMode::is_enabled());
}

/// The final tensors of a run with dropout and normalisation.
template <class... Valid>
std::map<std::string, at::Tensor> trained(Valid&&... valid) {
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.5, .norm = true});
  frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 2},
                          Optimize<SGD>{.lr = 0.1, .momentum = 0.9}, Validate<Every<2>>{}};
  static_cast<void>(trainer.fit(Resident(samples(30), {.batch = 8, .shuffle = true}), valid...));
  for (at::Tensor const& parameter : module->parameters()) CHECK_FALSE(parameter.grad().defined());
  return tensors_of(*module);
}

TEST_CASE("a run that validates ends with the same bits as one that does not") {
  CHECK(same_bits(trained(), trained(Resident(samples(20, 92), {.batch = 8, .shuffle = true}))));
}

TEST_CASE("a validation loss that is NaN or infinite is reported, not thrown") {
  double const infinity = std::numeric_limits<double>::infinity();
  auto const report = run_script({0.5, std::nan(""), infinity, 0.25});
  REQUIRE(report.validations.size() == 4);
  CHECK(std::isnan(report.validations[1].metrics["loss"]));
  CHECK(report.validations[2].metrics["loss"] == infinity);
  CHECK(report.last()["loss"] == 0.25);
}

struct Empty {
  void seek(frugal::Cursor const&) {}
  std::optional<frugal::Batch> next() { return std::nullopt; }
};

TEST_CASE("validation data without a batch is an error that says which source it was") {
  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, frugal::Settings{},
                          Optimize<SGD>{}};
  try {
    static_cast<void>(trainer.fit(Resident(samples(8)), Empty{}));
    FAIL("no error came");
  } catch (frugal::EmptySourceError const& error) {
    CHECK(error.fault().what == "the validation source has no batch");
  }
}

}  // namespace frugal_test::policy_validate
