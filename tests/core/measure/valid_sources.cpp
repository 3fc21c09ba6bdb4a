// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/reference.hpp"

#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::loop_valid_sources {

using namespace frugal_test::support;
namespace fr = frugal;
using fr::named;

using Shifted = fr::Watch<"shifted/accuracy", fr::Better::higher>;

fr::TensorDataset data(std::int64_t count, std::uint32_t seed, std::int64_t batch = 4) {
  return fr::TensorDataset(samples(count, seed), {.batch = batch});
}

template <class... Ps>
auto trainer_of(fr::Settings const& settings, Ps const&... policies) {
  return fr::Trainer{std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3}),
                     fr::CrossEntropy{},
                     settings,
                     fr::Optimize<fr::SGD>{.lr = 0.1},
                     fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
                     policies...};
}

std::vector<std::string> names(fr::Metrics const& metrics) {
  std::vector<std::string> all;
  for (auto const& [name, value] : metrics) all.push_back(name);
  return all;
}

TEST_CASE("each source is measured as if it were the only one, under its name") {
  auto trainer = trainer_of({.epochs = 2});
  fr::TensorDataset train = data(20, 91);
  fr::TensorDataset valid = data(15, 92);
  fr::TensorDataset other = data(9, 93);
  fr::Report const report = trainer.fit(train, valid, named<"shifted">(other));
  CHECK(names(report.last()) ==
        std::vector<std::string>{"loss", "accuracy", "shifted/loss", "shifted/accuracy"});
  CHECK(report.last()["loss"] == trainer.evaluate(valid)["loss"]);
  CHECK(report.last()["shifted/loss"] == trainer.evaluate(other)["loss"]);
  CHECK((trainer.evaluate(valid, named<"shifted">(other)) == report.last()));
  CHECK(names(trainer.evaluate(named<"test">(data(9, 93)))) ==
        std::vector<std::string>{"test/loss", "test/accuracy"});
}

TEST_CASE("all may have names, ranges and temporaries are sources, and the run is the same") {
  auto const run = [](auto&&... valid) {
    auto trainer = trainer_of({.epochs = 2});
    fr::TensorDataset train = data(20, 91);
    fr::Report const report = trainer.fit(train, std::forward<decltype(valid)>(valid)...);
    return std::pair(report, tensors_of(*trainer.module()));
  };
  std::vector<fr::Batch> const batches{samples(4, 93), samples(2, 94)};
  auto const [two, weights] = run(named<"near">(data(15, 92)), named<"far">(batches));
  CHECK(names(two.last()) ==
        std::vector<std::string>{"near/loss", "near/accuracy", "far/loss", "far/accuracy"});
  auto const [one, other_weights] = run(data(15, 92));
  CHECK(two.last()["near/loss"] == one.last()["loss"]);
  CHECK(same_bits(weights, other_weights));
}

TEST_CASE("the training source itself may be one of them") {
  fr::TensorDataset train = data(20, 91);
  auto trainer = fr::Trainer{std::make_shared<Mlp>(), fr::CrossEntropy{}, fr::Settings{.epochs = 2},
                             fr::Optimize<fr::SGD>{}, fr::Validate<fr::Every<2>>{}};
  fr::Report const report = trainer.fit(train, data(8, 92), named<"train">(train));
  CHECK(report.steps == 10);
  CHECK(report.samples == 40);
  CHECK(report.validations.size() == 5);
}

TEST_CASE("policies watch a metric of a named source, and the log and the report have it") {
  TemporaryFolder const folder;
  auto trainer =
      trainer_of({.run_dir = folder.path(), .epochs = 6},
                 fr::EarlyStop<fr::Patience<2>, Shifted>{.min_delta = 1},
                 fr::Schedule<fr::Plateau<fr::Rational{1, 10}, fr::Patience<1>, Shifted>>{},
                 fr::Log<>{}, fr::Checkpoint<fr::Every<1, fr::Epoch>, fr::KeepBest<Shifted>>{});
  fr::Report const report = trainer.fit(data(20, 91), data(8, 92), named<"shifted">(data(9, 93)));
  CHECK(report.stopped_by == "EarlyStop");
  CHECK(report.epochs == 3);
  CHECK(text_of(folder / "metrics.jsonl").find(R"("shifted/accuracy":)") != std::string::npos);
  CHECK_FALSE(fr::best_checkpoint<Shifted>(folder.path()).empty());
}

/// Asks that the run be left in one batch of a validation, by number.
struct Leaves {
  std::stop_source* stop;
  int at;
  int* seen;
  fr::Loss operator()(std::shared_ptr<Mlp>& module, fr::Batch const& batch) const {
    if (!at::GradMode::is_enabled() && ++*seen == at) stop->request_stop();
    return fr::CrossEntropy{}(module, batch);
  }
};

TEST_CASE("a run that is left in the second source validates again when it resumes") {
  TemporaryFolder const folder;
  auto const run = [&](std::string const& name, int at) {
    std::stop_source stop;
    int seen = 0;
    fr::Trainer trainer{
        std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3}),
        Leaves{&stop, at, &seen},
        fr::Settings{.run_dir = folder / name, .epochs = 2, .stop = stop.get_token()},
        fr::Optimize<fr::SGD>{.lr = 0.1},
        fr::Checkpoint<fr::Every<100>>{},
        fr::Validate<fr::SanityBatches<0>>{}};
    return trainer.fit(data(20, 91), data(8, 92), named<"shifted">(data(9, 93)));
  };
  fr::Report const whole = run("whole", 0);
  // Two batches of the first source, and the second of the other.
  fr::Report const left = run("left", 4);
  CHECK(left.preempted);
  CHECK(left.validations.empty());
  fr::Report const resumed = run("left", 0);
  REQUIRE(resumed.validations.size() == 2);
  CHECK((resumed.validations[0].metrics == whole.validations[0].metrics));
  CHECK((resumed.validations[1].metrics == whole.validations[1].metrics));
}

struct Nothing {
  void seek(fr::Cursor const&) {}
  static std::optional<fr::Batch> next() { return std::nullopt; }
};

TEST_CASE("an empty source is named in the error") {
  auto trainer = trainer_of({});
  Nothing nothing;
  CHECK_THROWS_WITH_AS(trainer.fit(data(8, 91), data(8, 92), named<"shifted">(nothing)),
                       doctest::Contains("the validation 'shifted' source has no batch"),
                       fr::EmptySourceError);
}

TEST_CASE("under Device each source copies ahead, and one source for two is one still") {
  auto trainer = fr::Trainer{std::make_shared<Mlp>(),
                             fr::CrossEntropy{},
                             fr::Settings{.epochs = 2, .device = "cpu"},
                             fr::Optimize<fr::SGD>{},
                             fr::Validate<fr::Every<2>>{},
                             fr::DevicePrefetch<>{}};
  fr::TensorDataset train = data(20, 91);
  fr::Report const report =
      trainer.fit(train, data(8, 92), named<"train">(train), named<"shifted">(data(9, 93)));
  CHECK(report.steps == 10);
  CHECK(report.last().has("shifted/loss"));
  CHECK(report.last().has("train/loss"));
}

}  // namespace frugal_test::loop_valid_sources
