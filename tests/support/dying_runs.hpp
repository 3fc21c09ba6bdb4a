// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/running.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Runs that die in the middle, as on a machine that disappears, and their results.
namespace frugal_test::support::dying_runs {

/// Thrown to simulate the loss of the machine.
struct Gone {};

/// Sees every loss; ends the run like a kill, before the backward pass of one micro-batch.
struct Witness {
  std::vector<double>* losses = nullptr;
  std::uint64_t dies_at = 0;  ///< micro-batches; 0: never

  frugal::Loss operator()(std::shared_ptr<Mlp>& module, frugal::Batch const& batch) const {
    frugal::Loss loss = frugal::CrossEntropy{}(module, batch);
    if (!module->is_training()) return loss;
    losses->push_back(loss.value.template item<double>());
    if (losses->size() == dies_at) throw Gone{};
    return loss;
  }
};

struct Job {
  std::filesystem::path folder;
  std::uint64_t epochs = 3;
  std::uint64_t seed = 7;
  std::uint64_t dies_at = 0;  ///< micro-batches of this process
  Mlp::Shape shape{.dropout = 0.3, .norm = true};
  c10::Device device = c10::kCPU;
};

struct Outcome {
  bool died = false;
  frugal::Report report;
  std::map<std::string, at::Tensor> tensors;
  std::vector<double> losses;
};

/// Whether a line of the report's advice contains these words.
inline bool advises(frugal::Report const& report, std::string const& words) {
  return std::any_of(report.warnings.begin(), report.warnings.end(), [&](std::string const& line) {
    return line.find(words) != std::string::npos;
  });
}

/// The validation data of every run here: a checkpoint compares them at a resume.
inline frugal::TensorDataset validation_data(Mlp::Shape const& shape = {}) {
  return frugal::TensorDataset(samples(15, 92, shape.features), {.batch = 4});
}

/// On the job's device: three epochs of 11 batches (the last ragged), shuffled, with dropout and
/// normalization.
template <class Objective, class... Ps>
Outcome run_with(Job const& job, Objective const& objective, Ps const&... policies) {
  Outcome outcome;
  auto const module = std::make_shared<Mlp>(job.shape);
  frugal::Trainer trainer{
      module, objective,
      frugal::Settings{
          .run_dir = job.folder, .epochs = job.epochs, .seed = job.seed, .device = job.device},
      policies...};
  frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
  frugal::TensorDataset valid = validation_data(job.shape);
  try {
    outcome.report = trainer.fit(train, valid);
  } catch (Gone const&) {
    outcome.died = true;
  }
  module->to(c10::kCPU);
  outcome.tensors = tensors_of(*module);
  return outcome;
}

/// The same, recording every loss.
template <class... Ps>
Outcome run(Job const& job, Ps const&... policies) {
  std::vector<double> losses;
  Outcome outcome = run_with(job, Witness{.losses = &losses, .dies_at = job.dies_at}, policies...);
  outcome.losses = std::move(losses);
  return outcome;
}

/// Restarts until the run ends; each process dies after the given number of micro-batches.
template <class... Ps>
Outcome run_to_the_end(Job job, std::vector<std::uint64_t> const& deaths, Ps const&... policies) {
  for (std::uint64_t const death : deaths) {
    job.dies_at = death;
    CHECK(run(job, policies...).died);
  }
  job.dies_at = 0;
  return run(job, policies...);
}

using Steps = std::vector<std::uint64_t>;

inline Steps steps_in(std::filesystem::path const& folder) {
  Steps steps;
  for (auto const& each : frugal::RunDirectory(folder, frugal::Access::read).list().whole) {
    steps.push_back(each.step());
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

inline std::filesystem::path newest_in(std::filesystem::path const& folder) {
  return frugal::RunDirectory(folder, frugal::Access::read).newest_valid().checkpoint->folder;
}

}  // namespace frugal_test::support::dying_runs
