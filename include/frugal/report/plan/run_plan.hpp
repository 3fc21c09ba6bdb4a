// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <frugal/checkpoint/checkpoint_interval.hpp>
#include <frugal/report/plan/all_reduce.hpp>
#include <frugal/report/plan/compute_optimal.hpp>
#include <frugal/report/plan/memory.hpp>
#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/plan.hpp>
#include <frugal/report/plan/prices.hpp>
#include <frugal/report/plan/spot_cost.hpp>
#include <frugal/report/plan/tables.hpp>

namespace frugal::plan {

/// A whole run, before it begins.
struct RunInputs {
  double parameters = 0;
  double tokens = 0;  ///< 0: 20 for each parameter
  Device device{};
  std::string format = "BF16";
  double utilisation = 0.3;
  double devices = 1;
  std::optional<Price> on_demand{};  ///< without it there are hours, and no dollars
  std::optional<Price> spot{};
  double preemptions_per_hour = 0;
  Seconds restart{300};
  bool notice = false;
  Keeping keeping = Keeping::autocast;
  std::string optimizer = "AdamW";
  double activations = 0;      ///< bytes
  GigabytesPerSecond disk{1};  ///< at which a checkpoint is written
  GigabytesPerSecond link{};   ///< between devices; 0: communication is left out
  GradientFormat gradients = GradientFormat::FP32;
  double overlap = 0;
  double tokens_per_step = 0;  ///< of one device; for communication
};

/// Time, memory, checkpoints, communication and cost of one run.
inline Plan plan_of(RunInputs const& in) {
  detail::require_positive("parameters", in.parameters);
  detail::require_count("devices", in.devices);
  detail::require_not_negative("tokens", in.tokens);
  detail::require_not_negative("bandwidth", in.link.value());
  detail::require_not_negative("preemptions per hour", in.preemptions_per_hour);
  detail::require_not_negative("restart", in.restart.value());
  detail::require_positive("disk", in.disk.value());
  Allocation const run{in.parameters, in.tokens > 0 ? in.tokens : 20 * in.parameters};
  Speed const speed{in.device.peak(in.format), in.utilisation};
  double efficiency = 1;
  Plan plan;
  PlanSection& about = plan.add("Run");
  about.rows = {{"parameters", run.parameters},
                {"tokens", run.tokens},
                {"compute", run.flops(), Unit::flop, "6ND"},
                {"devices", in.devices, Unit::ratio, in.device.name + ", " + in.format},
                {"utilisation", in.utilisation, Unit::share, "of the peak, assumed"}};
  if (in.devices > 1 && in.link.value() > 0) {
    detail::require_positive("tokens per step", in.tokens_per_step);
    DataParallel const job{.devices = in.devices,
                           .parameters = in.parameters,
                           .gradients = in.gradients,
                           .bandwidth = in.link,
                           .samples_per_second = speed.flops_per_second() / (6 * in.parameters),
                           .samples = in.tokens_per_step,
                           .overlap = in.overlap};
    efficiency = estimate(job).efficiency;
    plan += plan_of(job, "tokens");
  } else if (in.link.value() > 0) {
    about.notes = {"One device sends no gradients: the bandwidth changes nothing."};
  }
  MemoryEstimate const memory =
      estimate(MemoryInputs{.parameters = in.parameters,
                            .per = bytes_per_parameter(in.keeping, optimizer_bytes(in.optimizer)),
                            .activations = in.activations});
  plan += plan_of(memory);
  if (gigabytes(memory.all()) > in.device.memory) {
    plan.sections.back().notes.push_back(
        "More than the device has: shard, freeze or use Recompute.");
  }
  Seconds const save = gigabytes(memory.checkpoint()) / in.disk;
  double const hours = time_for(run.flops(), speed).value() / in.devices / efficiency;
  PlanSection& time = plan.add("Time");
  time.rows = {{"hours", hours, Unit::hours},
               {"device_hours", hours * in.devices, Unit::hours},
               {"save_time", save.value(), Unit::seconds, "of a checkpoint, if the step waits"}};
  if (in.preemptions_per_hour > 0) {
    double const lifetime = 3600 / in.preemptions_per_hour;
    time.rows.push_back({"young_interval", young_interval(save.value(), lifetime), Unit::seconds});
    time.rows.push_back({"daly_interval", daly_interval(save.value(), lifetime), Unit::seconds});
  }
  if (!in.on_demand) {
    time.notes = {"The price is unknown: hours, and no dollars."};
    return plan;
  }
  double const billed = in.on_demand->billed(in.devices);
  if (billed > in.devices) {
    time.rows.push_back({"billed_devices", billed, Unit::ratio, "the price is one of whole nodes"});
  }
  plan += plan_of(
      RunCost{.price = in.on_demand->per_device(), .devices = billed, .hours = hours}.checked());
  if (in.spot) {
    plan += plan_of(SpotInputs{.hours = hours,
                               .devices = in.devices,
                               .on_demand = in.on_demand->per_device(),
                               .spot = in.spot->per_device(),
                               .preemptions_per_hour = in.preemptions_per_hour,
                               .save = save,
                               .restart = in.restart,
                               .notice = in.notice,
                               .billed = billed,
                               .spot_billed = in.spot->billed(in.devices)});
  }
  return plan;
}

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
#include <frugal/report/plan/run_plan.ipp>
#endif
