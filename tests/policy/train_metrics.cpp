// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/reference.hpp"

#include <cmath>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace frugal_test::policy_train_metrics {

using namespace frugal_test::support;
using namespace frugal_test::support::dying_runs;
namespace fr = frugal;

/// What a batch of training came to, by hand.
struct Trained {
  double right = 0;
  double rows = 0;
  double loss = 0;
};

/// Notes the outputs of training; ends the run, or runs out of memory, at one of them.
struct Noting {
  std::vector<Trained>* seen;
  std::uint64_t dies_at = 0;
  std::int64_t most_rows = 1000;  ///< that memory holds
  std::uint64_t runs_out_at = 0;  ///< of memory, once

  fr::Loss operator()(std::shared_ptr<Mlp>& module, fr::Batch const& batch) const {
    fr::Loss loss = fr::CrossEntropy{}(module, batch);
    if (!module->is_training()) return loss;
    auto const rows = static_cast<double>(batch.target.size(0));
    seen->push_back({loss.output.argmax(1).eq(batch.target).sum().item<double>(), rows,
                     loss.value.item<double>()});
    if (seen->size() == dies_at) throw Gone{};
    if (batch.target.size(0) > most_rows || seen->size() == runs_out_at) throw std::bad_alloc();
    return loss;
  }
};

Trained sum_of(std::vector<Trained> const& seen, std::size_t begin, std::size_t end) {
  Trained sum;
  for (std::size_t i = begin; i < end; ++i) {
    sum.right += seen.at(i).right;
    sum.rows += seen.at(i).rows;
    sum.loss += seen.at(i).loss * seen.at(i).rows;
  }
  return sum;
}

/// A log's lines without the wall time.
std::vector<Json> lines_in(std::filesystem::path const& path) {
  std::vector<Json> all;
  for (std::string const& line : lines_of(text_of(path))) {
    Json parsed = Json::parse(line);
    if (parsed.at("event") == "resume" || parsed.at("event") == "split") continue;
    parsed.erase("seconds");
    parsed.erase("memory_bytes");
    all.push_back(parsed);
  }
  return all;
}

TEST_CASE("a line has the metrics of the batches since the line before, ragged ones included") {
  TemporaryFolder const folder;
  std::vector<Trained> seen;
  // 11 batches an epoch, the last of 3.
  auto const outcome =
      run_with(Job{.folder = folder / "run", .epochs = 2}, Noting{&seen}, fr::Optimize<fr::SGD>{},
               fr::TrainMetrics<fr::Every<4>, fr::Accuracy>{}, fr::Log<fr::Every<4>>{});
  std::size_t windows = 0;
  for (Json const& line : lines_in(folder / "run/metrics.jsonl")) {
    if (line.at("event") != "step") {
      CHECK_FALSE(line.contains("train_accuracy"));
      continue;
    }
    Trained const sum = sum_of(seen, 4 * windows, 4 * windows + 4);
    ++windows;
    CHECK(line.at("train_accuracy") == sum.right / sum.rows);
    CHECK(line.at("train_loss").get<double>() == doctest::Approx(sum.loss / sum.rows));
  }
  CHECK(windows == 5);
  Trained const last = sum_of(seen, 16, 20);
  CHECK(outcome.report.train_metrics["train_accuracy"] == last.right / last.rows);
  std::ostringstream text;
  text << outcome.report;
  CHECK(text.str().find(", train_accuracy 0") != std::string::npos);
}

TEST_CASE("a window of several micro-batches counts each, and an epoch's cadence all of it") {
  TemporaryFolder const folder;
  std::vector<Trained> seen;
  auto const outcome =
      run_with(Job{.folder = folder / "run", .epochs = 2}, Noting{&seen}, fr::Optimize<fr::SGD>{},
               fr::Accumulate<3>{}, fr::TrainMetrics<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
               fr::Log<fr::Every<1, fr::Epoch>>{});
  Trained const last = sum_of(seen, 11, 22);
  CHECK(last.rows == 43);
  CHECK(outcome.report.train_metrics["train_accuracy"] == last.right / 43);
  auto const lines = lines_in(folder / "run/metrics.jsonl");
  REQUIRE(lines.at(3).at("event") == "epoch");
  CHECK(lines[3].at("train_accuracy") == last.right / 43);
}

TEST_CASE("a run that dies and resumes reports the same") {
  TemporaryFolder const folder;
  auto const start = [&](std::string const& name, std::uint64_t dies_at) {
    std::vector<Trained> seen;
    return run_with(
        Job{.folder = folder / name}, Noting{&seen, dies_at}, fr::Optimize<fr::SGD>{},
        fr::TrainMetrics<fr::Every<6>, fr::Accuracy, fr::F1Score<fr::Macro>, fr::ConfusionMatrix>{},
        fr::Log<fr::Every<4>>{}, fr::Checkpoint<fr::Every<5>>{});
  };
  fr::Report const whole = start("whole", 0).report;
  CHECK(start("killed", 9).died);
  CHECK(start("killed", 12).died);
  fr::Report const resumed = start("killed", 0).report;
  CHECK((lines_in(folder / "killed/metrics.jsonl") == lines_in(folder / "whole/metrics.jsonl")));
  CHECK((resumed.train_metrics == whole.train_metrics));
  CHECK(whole.train_metrics.has_table("train_confusion_matrix"));
  // Started again at its end it still has them.
  CHECK((start("whole", 0).report.train_metrics == whole.train_metrics));
}

TEST_CASE("a run may go on with metrics that the checkpoint does not have, and without them") {
  TemporaryFolder const folder;
  Job job{.folder = folder / "run", .epochs = 1};
  auto const checkpoint = fr::Checkpoint<fr::Every<5>>{};
  run_with(job, fr::CrossEntropy{}, fr::Optimize<fr::SGD>{}, checkpoint);
  job.epochs = 2;
  CHECK(run_with(job, fr::CrossEntropy{}, fr::Optimize<fr::SGD>{}, checkpoint,
                 fr::TrainMetrics<fr::Every<5>, fr::Accuracy>{})
            .report.train_metrics.has("train_accuracy"));
  job.epochs = 3;
  CHECK(run_with(job, fr::CrossEntropy{}, fr::Optimize<fr::SGD>{}, checkpoint).report.steps == 33);
}

TEST_CASE("a resumed run refuses or warns of another number of a metric") {
  TemporaryFolder const folder;
  auto const start = [&](int epochs, int k, int of_training) {
    return run_with(Job{.folder = folder / "run", .epochs = static_cast<std::uint64_t>(epochs)},
                    fr::CrossEntropy{}, fr::Optimize<fr::SGD>{}, fr::Checkpoint<fr::Every<5>>{},
                    fr::Validate<fr::TopK<>>{.metrics = {{.k = k}}},
                    fr::TrainMetrics<fr::Every<4>, fr::TopK<>>{.metrics = {{.k = of_training}}})
        .report;
  };
  CHECK(start(1, 2, 2).warnings.empty());
  CHECK(start(2, 2, 2).warnings.empty());
  fr::Report const other = start(3, 1, 2);
  CHECK(other.last().has("top1"));
  REQUIRE(other.warnings.size() == 1);
  CHECK(other.warnings.front().find("Validate::metrics[0].k") != std::string::npos);
  // Its sums are those of another metric.
  CHECK_THROWS_WITH_AS(start(4, 1, 1), doctest::Contains("top1"), fr::StateError);
}

TEST_CASE("a window that ran out of memory and is made once more counts once") {
  TemporaryFolder const folder;
  auto const trained = [&](Noting const& objective) {
    return run_with(
               Job{.folder = folder / "run", .epochs = 1, .shape = {}}, objective,
               fr::Optimize<fr::SGD>{}, fr::Accumulate<fr::Auto>{},
               fr::TrainMetrics<fr::Every<11>, fr::Accuracy, fr::TopK<>>{.metrics = {{}, {.k = 1}}},
               fr::Log<>{})
        .report.train_metrics;
  };
  std::vector<Trained> seen;
  fr::Metrics const found = trained(Noting{&seen, 0, 2});
  // The first batch came to nothing; then halves of 10 batches, and of 3 samples 2 and 1.
  REQUIRE(seen.size() == 23);
  Trained const all = sum_of(seen, 1, 23);
  CHECK(all.rows == 43);
  CHECK(found["train_accuracy"] == all.right / 43);
  CHECK(found["train_top1"] == all.right / 43);
  // In a later window, whose first forward pass has no memory: the windows before it stay.
  seen.clear();
  fr::Metrics const later = trained(Noting{.seen = &seen, .runs_out_at = 6});
  Trained const before = sum_of(seen, 0, 5), after = sum_of(seen, 6, seen.size());
  CHECK(before.rows + after.rows == 43);
  CHECK(later["train_accuracy"] == (before.right + after.right) / 43);
}

TEST_CASE("the weights are those of a run that measures nothing, and Progress shows the metrics") {
  TemporaryFolder const folder;
  std::FILE* const out = std::fopen((folder / "out").c_str(), "w");
  auto const measured =
      run_with(Job{.folder = folder / "a"}, fr::CrossEntropy{}, fr::Optimize<fr::SGD>{},
               fr::TrainMetrics<fr::Every<2>, fr::Accuracy>{},
               fr::Progress<>{.out = out, .plain = true, .line_seconds = 0});
  std::fclose(out);
  auto const plain =
      run_with(Job{.folder = folder / "b"}, fr::CrossEntropy{}, fr::Optimize<fr::SGD>{});
  CHECK(same_bits(measured.tensors, plain.tensors));
  CHECK(plain.report.train_metrics.empty());
  CHECK(text_of(folder / "out").find("  train_accuracy 0") != std::string::npos);
}

TEST_CASE("an objective that returns a bare loss is refused where a metric needs the output") {
  auto const bare = [](std::shared_ptr<Mlp>& module, fr::Batch const& batch) {
    return at::cross_entropy_loss(module->forward(batch.data), batch.target);
  };
  CHECK_THROWS_AS(run_with(Job{}, bare, fr::Optimize<fr::SGD>{},
                           fr::TrainMetrics<fr::Every<2>, fr::Accuracy>{}),
                  fr::MetricError);
  CHECK(run_with(Job{}, bare, fr::Optimize<fr::SGD>{}, fr::TrainMetrics<fr::Every<2>>{})
            .report.train_metrics.has("train_loss"));
}

/// Fails from its third batch on.
struct FailsLater {
  static constexpr std::string_view name = "fails_later";
  template <class B>
  void add(fr::Loss const&, B const&) {
    if (++batches == 3) throw std::runtime_error("no such class");
  }
  double result() const { return batches; }
  template <class Archive>
  void persist(Archive& archive) {
    archive("batches", batches);
  }
  double batches = 0;
};

TEST_CASE(
    "a metric that fails in training is NaN with advice; at the first micro-batch it throws") {
  TemporaryFolder const folder;
  auto const outcome =
      run_with(Job{.folder = folder / "run", .epochs = 1}, fr::CrossEntropy{},
               fr::Optimize<fr::SGD>{}, fr::TrainMetrics<fr::Every<4>, FailsLater, fr::Accuracy>{});
  CHECK(outcome.report.steps == 11);
  CHECK(std::isnan(outcome.report.train_metrics["train_fails_later"]));
  CHECK_FALSE(std::isnan(outcome.report.train_metrics["train_accuracy"]));
  bool advised = false;
  for (std::string const& text : outcome.report.warnings) {
    advised =
        advised || text == "TrainMetrics: fails_later is NaN, because of an error: no such class";
  }
  CHECK(advised);
  fr::Trainer trainer{std::make_shared<Mlp>(), fr::CrossEntropy{}, fr::Settings{},
                      fr::Optimize<fr::SGD>{}, fr::TrainMetrics<fr::Every<4>, fr::TopK<9>>{}};
  CHECK_THROWS_AS(trainer.fit(fr::TensorDataset(samples(8))), fr::MetricError);
}

/// Is called as its member says.
struct Called {
  std::string name_of_it;
  std::string own_name() const { return name_of_it; }
  template <class B>
  void add(fr::Loss const&, B const&) {}
  double result() const { return 1; }
  template <class Archive>
  void persist(Archive&) {}
};

TEST_CASE("names that metrics have at run time are unique, and no keys of a log") {
  fr::Trainer trainer{std::make_shared<Mlp>(), fr::CrossEntropy{}, fr::Settings{.epochs = 1},
                      fr::Optimize<fr::SGD>{}, fr::TrainMetrics<fr::Every<4>, Called, Called>{}};
  auto& metrics = trainer.train_metrics().metrics;
  for (char const* const name : {"first", "", "step", "loss"}) {
    metrics = {Called{"first"}, Called{name}};
    CHECK_THROWS_WITH_AS(trainer.fit(fr::TensorDataset(samples(8))),
                         doctest::Contains("TrainMetrics::metrics[1]"), fr::MetricError);
  }
  metrics = {Called{"first"}, Called{"second"}};
  CHECK_NOTHROW(trainer.fit(fr::TensorDataset(samples(8))));
}

}  // namespace frugal_test::policy_train_metrics
