// SPDX-License-Identifier: Apache-2.0
// Runs over a loader: killed, resumed, with samples left out.
#include <doctest/doctest.h>

#include <frugal/data/limited.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/loading/transformed.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/validate.hpp>
#include <frugal/trainer.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::data_loading_fit {

using namespace frugal_test::support;
using frugal::Batch;
using frugal::OnError;
using frugal::SampleKey;

/// 70 samples of a linear rule, some of them damaged.
struct Set {
  Batch all = samples(70);
  std::uint64_t size() const { return 70; }
  Batch get(std::uint64_t index) const {
    if (index % 23 == 5) throw frugal::DataError({"cut off", "byte 3", "", ""});
    auto const i = static_cast<std::int64_t>(index);
    return {all.data[i], all.target[i]};
  }
};
struct Noise {
  Batch operator()(Batch sample, SampleKey const& key) const {
    sample.data = sample.data + frugal::Draw(key).normal();
    return sample;
  }
};

auto source_of(int workers) {
  return frugal::loader(frugal::Transformed(Set{}, Noise{}), {.batch = 8}, frugal::Stack{},
                        {.workers = workers, .on_error = OnError::Skip, .skip_limit = 0.1});
}

struct Outcome {
  frugal::Report report;
  std::map<std::string, at::Tensor> tensors;
};

/// Two epochs; ends after `steps`, if that is not 0.
template <class Source>
Outcome run_over(Source source, std::filesystem::path const& folder, std::uint64_t steps) {
  auto net = std::make_shared<Mlp>();
  frugal::Settings settings{.run_dir = folder, .epochs = 2};
  if (steps != 0) settings.steps = steps;
  frugal::Trainer trainer{net,
                          frugal::CrossEntropy{},
                          settings,
                          frugal::Optimize<frugal::SGD>{},
                          frugal::Accumulate<2>{},
                          frugal::Checkpoint<frugal::Every<1>>{}};
  frugal::Report report = trainer.fit(source);
  return {std::move(report), tensors_of(*net)};
}
Outcome run(std::filesystem::path const& folder, int workers, std::uint64_t steps = 0) {
  return run_over(source_of(workers), folder, steps);
}

TEST_CASE("a run with skipped samples that is resumed anywhere ends as one that never ended") {
  TemporaryFolder const folder;
  Outcome const whole = run(folder / "whole", 0);
  // 3 of 70 samples are damaged; an epoch has 9 batches, and so 5 windows.
  CHECK(whole.report.steps == 10);
  CHECK(whole.report.samples == 2 * 67);
  for (std::uint64_t const killed_at : {1U, 3U, 5U, 8U}) {
    std::filesystem::path const runs = folder / std::to_string(killed_at);
    static_cast<void>(run(runs, 3, killed_at));
    static_cast<void>(run(runs, 1, killed_at + 1));  // a resume of a resume
    Outcome const resumed = run(runs, 2);
    REQUIRE(resumed.report.resumed);
    CHECK(resumed.report.resumed->step == killed_at + 1);
    CHECK(resumed.report.steps == whole.report.steps);
    CHECK(resumed.report.samples == whole.report.samples);
    CHECK(same_bits(resumed.tensors, whole.tensors));
  }
}

TEST_CASE("so it does over the first batches of each epoch alone") {
  TemporaryFolder const folder;
  auto const limited_run = [](std::filesystem::path const& runs, int workers, std::uint64_t steps) {
    return run_over(frugal::Limited(source_of(workers), 5), runs, steps);
  };
  Outcome const whole = limited_run(folder / "whole", 0, 0);
  // 5 batches of an epoch's 9, and so 3 windows.
  CHECK(whole.report.steps == 6);
  CHECK(whole.report.epochs == 2);
  for (std::uint64_t const killed_at : {1U, 2U, 3U, 5U}) {
    std::filesystem::path const runs = folder / std::to_string(killed_at);
    static_cast<void>(limited_run(runs, 3, killed_at));
    Outcome const resumed = limited_run(runs, 2, 0);
    REQUIRE(resumed.report.resumed);
    CHECK(resumed.report.steps == whole.report.steps);
    CHECK(resumed.report.samples == whole.report.samples);
    CHECK(same_bits(resumed.tensors, whole.tensors));
  }
}

TEST_CASE("a damaged sample ends a run at its batch, with the module as it was before") {
  auto net = std::make_shared<Mlp>();
  frugal::Trainer trainer{net, frugal::CrossEntropy{}, frugal::Settings{},
                          frugal::Optimize<frugal::SGD>{}};
  auto source = frugal::loader(Set{}, {.batch = 4, .shuffle = false}, frugal::Stack{},
                               {.workers = 2, .name = "rule"});
  try {
    static_cast<void>(trainer.fit(source));
    FAIL("nothing was thrown");
  } catch (frugal::WorkerError const& error) {
    CHECK(error.fault().where == "sample 5, the batch at position 4 of epoch 0, rule");
  }
  for (at::Tensor const& parameter : net->parameters()) CHECK_FALSE(parameter.grad().defined());
}

/// A source that has advice and does not measure how long it is waited for, as ParquetBatches.
struct Advised {
  frugal::TensorDataset rows{samples(16), {.batch = 8}};
  void seek(frugal::Cursor const& cursor) { rows.seek(cursor); }
  std::optional<Batch> next() { return rows.next(); }
  std::string warning() const { return "write smaller row groups"; }
};

TEST_CASE("a report has the advice of a source that does not measure its waiting") {
  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 1}, frugal::Optimize<frugal::SGD>{}};
  Advised source;
  CHECK(trainer.fit(source).warnings == std::vector<std::string>{"write smaller row groups"});
}

TEST_CASE("a loader can train and validate at once, each its own") {
  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 2}, frugal::Optimize<frugal::SGD>{},
                          frugal::Validate<>{}};
  auto train = source_of(2);
  auto valid = source_of(2);
  frugal::Report const report = trainer.fit(train, valid);
  CHECK(report.validations.size() == 2);
  CHECK(report.samples == 2 * 67);
}

}  // namespace frugal_test::data_loading_fit
