// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/all_reduce.hpp>
#include <frugal/report/plan/compute_optimal.hpp>
#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/plan.hpp>
#include <frugal/report/plan/spot_cost.hpp>
#include <frugal/report/plan/tables.hpp>

#include <optional>

namespace frugal::plan {

/// A run whose recipe is at hand: sizes are counted, and the time of a step is measured. What is
/// not known is left out of its plan.
struct RecipeRun {
  double parameters = 0;           ///< of the model
  double trained = 0;              ///< of these, with gradients
  double checkpoint_bytes = 0;     ///< on disk
  std::optional<double> steps{};   ///< of the run
  std::optional<Seconds> step{};   ///< of one device alone, without communication
  double samples = 1;              ///< of one device in a step
  double tokens_per_sample = 0;    ///< 0: not a language model, and no compute-optimal one
  double devices = 1;              ///< that train together, each with its own samples
  std::optional<double> billed{};  ///< devices that are paid for; else `devices`
  GigabytesPerSecond link{};       ///< between devices; 0: communication is left out
  GradientFormat gradients = GradientFormat::FP32;
  double overlap = 0;                 ///< share of a step in which gradients travel
  GigabytesPerSecond disk{1};         ///< at which a checkpoint is written
  std::optional<Seconds> save{};      ///< that a checkpoint stops the steps; else by bytes and disk
  std::optional<Seconds> lifetime{};  ///< of the job: mean time between two interruptions
  Seconds restart{300};               ///< from an interruption to the next step
  std::optional<PricePerDevice> on_demand{};
  std::optional<PricePerDevice> spot{};

  bool communicates() const { return devices > 1 && link.value() > 0; }
  DataParallel data_parallel() const;
  /// That a step waits for other devices.
  Seconds exposed() const {
    return communicates() && step ? estimate(data_parallel()).exposed : Seconds(0);
  }
  std::optional<double> hours() const;
  Seconds save_time() const { return save ? *save : gigabytes(checkpoint_bytes) / disk; }
};

/// What a model and its tokens are against the compute-optimal ones of the same compute.
Plan plan_of(Allocation const& run);

/// Checkpoints, communication, model size and spot, with the numbers that `frugal_plan` gives for
/// the same inputs.
Plan plan_of(RecipeRun const& in);

}  // namespace frugal::plan

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/recipe_plan.ipp>
#endif
