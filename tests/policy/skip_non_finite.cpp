// SPDX-License-Identifier: Apache-2.0
#include <frugal/policy/skip_non_finite.hpp>

#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/non_finite.hpp"
#include "support/running.hpp"

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::policy_skip_non_finite {

using namespace support;
using dying_runs::advises;
using frugal::Every;
using frugal::SkipNonFinite;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

struct Outcome {
  frugal::Report report;
  std::map<std::string, at::Tensor> tensors;
};

/// Two epochs of a module on data in windows of 4, or of several of these.
template <class Objective, class Module, class... Ps>
Outcome train(Objective const& objective, std::shared_ptr<Module> module, frugal::Batch const& data,
              frugal::Settings const& settings, Ps const&... policies) {
  frugal::Trainer trainer{module, objective, settings, policies...};
  frugal::TensorDataset source(data, {.batch = 4, .shuffle = false});
  Outcome outcome;
  outcome.report = trainer.fit(source);
  outcome.tensors = tensors_of(*module);
  return outcome;
}

template <class... Ps>
void skips_one_window(std::int64_t samples_of_window, Ps const&... policies) {
  auto const mlp = [] { return std::make_shared<Mlp>(); };
  frugal::Batch const bad = marked(48, 24, 4);
  // Of several micro-batches the others of the window are skipped with the bad one.
  frugal::Batch const good = without(bad, 24, samples_of_window);
  Outcome const clean = train(Rooted{}, mlp(), good, {.epochs = 2}, policies...);
  Outcome const outcome = train(Rooted{}, mlp(), bad, {.epochs = 2}, policies..., SkipNonFinite{});
  CHECK(same_bits(outcome.tensors, clean.tensors));
  CHECK(outcome.report.steps == clean.report.steps);
  CHECK(outcome.report.non_finite_windows == 2);
  CHECK(advises(outcome.report, "SkipNonFinite has skipped windows"));
}

TEST_CASE("a window with a NaN gradient is skipped, as if it were not in the data") {
  skips_one_window(4, frugal::Optimize<frugal::AdamW>{});
  skips_one_window(4, frugal::Optimize<frugal::SGD>{.momentum = 0.9, .dampening = 0.1});
}

TEST_CASE("so it is in BF16, and with several micro-batches in a window") {
  skips_one_window(4, frugal::Optimize<frugal::AdamW>{}, frugal::Precision<frugal::BF16>{});
  skips_one_window(8, frugal::Optimize<frugal::AdamW>{}, frugal::Accumulate<2>{});
}

TEST_CASE("a torch::optim optimizer is not called for such a window") {
  skips_one_window(4, frugal::Optimize<frugal::Any>{.make = [](std::vector<at::Tensor> parameters) {
                     return std::make_unique<torch::optim::AdamW>(std::move(parameters));
                   }});
}

TEST_CASE("a window with a loss that is not finite is skipped, and the loss is in no mean") {
  frugal::Batch bad = samples(44);
  bad.data = bad.data.clone();
  bad.data.narrow(0, 20, 4).fill_(not_a_number);
  auto const mlp = [] { return std::make_shared<Mlp>(); };
  frugal::Optimize<frugal::AdamW> const adam;
  Outcome const clean =
      train(frugal::CrossEntropy{}, mlp(), without(bad, 20, 4), {.epochs = 2}, adam);
  Outcome const outcome =
      train(frugal::CrossEntropy{}, mlp(), bad, {.epochs = 2}, adam, SkipNonFinite{});
  CHECK(same_bits(outcome.tensors, clean.tensors));
  CHECK(outcome.report.non_finite_windows == 2);
  CHECK(outcome.report.train_loss == clean.report.train_loss);
}

/// The statistics of BatchNorm and the weights; not the number of batches.
std::map<std::string, at::Tensor> without_counts(std::map<std::string, at::Tensor> tensors) {
  std::erase_if(tensors, [](auto const& each) { return each.second.scalar_type() == at::kLong; });
  return tensors;
}

TEST_CASE("the running statistics of a skipped window that is not finite are those before it") {
  auto const norms = [] { return std::make_shared<Mlp>(Mlp::Shape{.norm = true}); };
  for (double const value : {static_cast<double>(not_a_number), 1e38}) {
    frugal::Batch bad = samples(44);
    bad.data = bad.data.clone();
    bad.data.narrow(0, 20, 4).fill_(value);
    bad.data[20].neg_();
    TemporaryFolder const folder;
    frugal::Optimize<frugal::AdamW> const adam;
    Outcome const outcome =
        train(frugal::CrossEntropy{}, norms(), bad, {.run_dir = folder.path(), .epochs = 2}, adam,
              SkipNonFinite{}, frugal::Checkpoint<Every<4>>{});
    Outcome const clean =
        train(frugal::CrossEntropy{}, norms(), without(bad, 20, 4), {.epochs = 2}, adam);
    CHECK(outcome.report.non_finite_windows == 2);
    CHECK(same_bits(without_counts(outcome.tensors), without_counts(clean.tensors)));
  }
}

TEST_CASE("a skipped loss is in no mean of TrainMetrics, and in none of the objective's scalars") {
  frugal::Batch bad = samples(44);
  bad.data = bad.data.clone();
  bad.data.narrow(0, 20, 4).fill_(not_a_number);
  TemporaryFolder const folder;
  Outcome const outcome = train(
      [](auto& module, frugal::Batch const& batch) {
        frugal::Loss loss = frugal::CrossEntropy{}(module, batch);
        loss.scalars = {{"twice", 2 * loss.value.detach()}};
        return loss;
      },
      std::make_shared<Mlp>(), bad, {.run_dir = folder.path(), .epochs = 1},
      frugal::Optimize<frugal::SGD>{}, SkipNonFinite{},
      frugal::TrainMetrics<Every<1, frugal::Epoch>>{}, frugal::Log<Every<1, frugal::Epoch>>{});
  CHECK(outcome.report.train_metrics["train_loss"] == doctest::Approx(outcome.report.train_loss));
  std::string const log = text_of(folder / "metrics.jsonl");
  CHECK(log.find("\"twice\":null") == std::string::npos);
  CHECK(log.find("\"twice\":") != std::string::npos);
}

TEST_CASE(
    "a run without such a window has the same bits with the policy and without, and no advice") {
  auto const trained = [](auto const&... policies) {
    return train(frugal::CrossEntropy{}, std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3}),
                 samples(44), {.epochs = 2}, frugal::Optimize<frugal::AdamW>{}, policies...);
  };
  Outcome const with = trained(SkipNonFinite{});
  CHECK(same_bits(with.tensors, trained().tensors));
  CHECK(with.report.warnings.empty());
  CHECK(with.report.non_finite_windows == 0);
}

/// An embedding with sparse gradients, of which row 7 becomes NaN.
struct SparseRows : torch::nn::Module {
  SparseRows()
      : table(register_module(
            "table", torch::nn::Embedding(torch::nn::EmbeddingOptions(8, 3).sparse(true)))) {
    torch::NoGradGuard const no_gradients;
    table->weight.copy_(support::table({8, 3}, 17, 0));
  }
  torch::nn::Embedding table;
};
struct OfSparseRows {
  frugal::Loss operator()(std::shared_ptr<SparseRows>& module, frugal::Batch const& batch) const {
    at::Tensor const rows = module->table(batch.data);
    at::Tensor const common = (7 - batch.data.max()).clamp(0, 1).to(at::kFloat);
    return {.value = rows.square().mean() + (rows.sum() * 0 + common).sqrt() * 0};
  }
};

TEST_CASE("sparse gradients are looked at too") {
  frugal::Optimize<frugal::Any> const sgd{.make = [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::SGD>(std::move(parameters), 0.1);
  }};
  auto const rows = [] { return std::make_shared<SparseRows>(); };
  frugal::Batch const bad = rows_of(5);
  Outcome const outcome = train(OfSparseRows{}, rows(), bad, {.epochs = 2}, sgd, SkipNonFinite{});
  CHECK(outcome.report.non_finite_windows == 2);
  CHECK(same_bits(outcome.tensors,
                  train(OfSparseRows{}, rows(), without(bad, 20, 4), {.epochs = 2}, sgd).tensors));
}

TEST_CASE(
    "windows that are all bad fail the run after most_skips of them, with its weights intact") {
  auto const module = std::make_shared<Mlp>();
  auto const before = tensors_of(*module);
  CHECK_THROWS_WITH_AS(
      train(Rooted{}, module, marked(44, 0, 44), {}, frugal::Optimize<frugal::AdamW>{},
            SkipNonFinite{.most_skips = 5}),
      doctest::Contains("5 windows in a row had a loss or gradients that are NaN or infinite (step "
                        "0, epoch 0)"),
      frugal::GradientError);
  CHECK(same_bits(tensors_of(*module), before));
}

TEST_CASE("a good window begins the count again") {
  frugal::Batch data = marked(44, 0, 16);
  data.data.narrow(0, 20, 16).fill_(mark);
  CHECK(train(Rooted{}, std::make_shared<Mlp>(), data, {}, frugal::Optimize<frugal::AdamW>{},
              SkipNonFinite{.most_skips = 5})
            .report.non_finite_windows == 8);
}

TEST_CASE("most_skips of 0, and a line search, are refused") {
  auto const mlp = [] { return std::make_shared<Mlp>(); };
  CHECK_THROWS_WITH_AS(train(frugal::CrossEntropy{}, mlp(), samples(8), {},
                             frugal::Optimize<frugal::AdamW>{}, SkipNonFinite{.most_skips = 0}),
                       doctest::Contains("most_skips is 0"), frugal::SettingsError);
  frugal::Optimize<frugal::Any> const search{.make = [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::LBFGS>(std::move(parameters));
  }};
  CHECK_THROWS_WITH_AS(
      train(frugal::CrossEntropy{}, mlp(), samples(8), {}, search, SkipNonFinite{}),
      doctest::Contains("without SkipNonFinite"), frugal::SettingsError);
}

/// Sets FRUGAL_PRECISION for its lifetime.
struct InFormat {
  explicit InFormat(char const* name) { ::setenv("FRUGAL_PRECISION", name, 1); }
  InFormat(InFormat const&) = delete;
  InFormat& operator=(InFormat const&) = delete;
  ~InFormat() { ::unsetenv("FRUGAL_PRECISION"); }
};

TEST_CASE("where FP16 is chosen at run time its own flag counts, and a note says so") {
  using Chosen = frugal::Precision<frugal::FromEnv<frugal::FP32, frugal::FP16>>;
  auto const trained = [](char const* format) {
    InFormat const in(format);
    return train(Rooted{}, std::make_shared<Mlp>(), marked(44, 20, 4), {.epochs = 2},
                 frugal::Optimize<frugal::AdamW>{}, Chosen{.scaling = {.initial = 8}},
                 SkipNonFinite{.most_skips = 1000})
        .report;
  };
  frugal::Report const half = trained("FP16");
  CHECK(half.non_finite_windows == 2);
  CHECK(advises(half, "SkipNonFinite does nothing"));
  frugal::Report const whole = trained("FP32");
  CHECK(whole.non_finite_windows == 2);
  CHECK_FALSE(advises(whole, "SkipNonFinite does nothing"));
}

TEST_CASE("the skips in a row continue in a resumed run") {
  TemporaryFolder const folder;
  auto const start = [&](std::uint64_t epochs) {
    return train(Rooted{}, std::make_shared<Mlp>(), marked(12, 4, 8),
                 {.run_dir = folder.path(), .epochs = epochs}, frugal::Optimize<frugal::AdamW>{},
                 SkipNonFinite{.most_skips = 3}, frugal::Checkpoint<Every<1, frugal::Epoch>>{});
  };
  // One good window and two bad ones in each epoch.
  CHECK(start(1).report.non_finite_windows == 2);
  Outcome const resumed = start(2);
  CHECK(resumed.report.non_finite_windows == 4);
  // Two bad windows follow, and the first of them is the third in a row.
  frugal::Batch const bad_first = marked(12, 0, 8);
  CHECK_THROWS_AS(
      train(Rooted{}, std::make_shared<Mlp>(), bad_first, {.run_dir = folder.path(), .epochs = 3},
            frugal::Optimize<frugal::AdamW>{}, SkipNonFinite{.most_skips = 3},
            frugal::Checkpoint<Every<1, frugal::Epoch>>{.changed_data = {"data"}}),
      frugal::GradientError);
}

TEST_CASE("a step of gradients in host memory has no operator more") {
  auto const per_step = [](auto const&... policies) {
    auto const operators = [&](std::uint64_t steps) {
      return operators_of([&] {
        train(frugal::CrossEntropy{}, std::make_shared<Mlp>(), samples(400),
              {.epochs = 1, .steps = steps}, frugal::Optimize<frugal::AdamW>{}, policies...);
      });
    };
    auto many = operators(30);
    for (auto const& [name, count] : operators(10)) many[name] -= count;
    std::erase_if(many, [](auto const& each) { return each.second == 0; });
    return many;
  };
  CHECK(per_step(SkipNonFinite{}) == per_step());
}

}  // namespace frugal_test::policy_skip_non_finite
