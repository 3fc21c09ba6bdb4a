// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include <frugal/compose/composition.hpp>
#include <frugal/data/range.hpp>
#include <frugal/data/source.hpp>
#include <frugal/error.hpp>
#include <frugal/explain.hpp>
#include <frugal/loop/recipe_traits.hpp>
#include <frugal/plan/checkpoint_interval.hpp>
#include <frugal/plan/money.hpp>
#include <frugal/plan/spot_cost.hpp>
#include <frugal/plan_memory.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/run/horizon.hpp>
#include <frugal/watch/bytes.hpp>
#include <frugal/watch/number_texts.hpp>

namespace frugal {

/// What explain cannot find out by itself. What is left out is not printed.
struct PlanInputs {
  std::optional<plan::PricePerDevice> price{};  ///< USD per hour of one device; else CostMeter's
  int devices = 1;                              ///< that are paid for; else CostMeter's
  std::optional<double> step_seconds{};         ///< of one step; else Throughput's last measurement
  std::optional<double> save_seconds{};         ///< for which a checkpoint stops the training
  std::optional<double> lifetime_seconds{};    ///< of a machine, on average, before it is preempted
  std::optional<plan::PricePerDevice> spot{};  ///< the price where machines live so long
  double restart_seconds = 300;                ///< from a preemption to the next step
};

namespace detail {

inline void require(PlanInputs const& given) {
  auto const refuse = [](std::string const& name, double value) {
    throw SettingsError({.what = name + " is " + std::to_string(value),
                         .where = "explain",
                         .why = "it is a price, a time or a number of devices",
                         .fix = "Give more than 0, or leave it out."});
  };
  auto const positive = [&](char const* name, std::optional<double> value) {
    if (value && !(*value > 0 && std::isfinite(*value))) refuse(name, *value);
  };
  auto const price = [&](char const* name, std::optional<plan::PricePerDevice> const& value) {
    if (value && !(value->value() >= 0 && std::isfinite(value->value()))) {
      refuse(name, value->value());
    }
  };
  price("price", given.price);
  price("spot", given.spot);
  positive("devices", static_cast<double>(given.devices));
  positive("step_seconds", given.step_seconds);
  positive("save_seconds", given.save_seconds);
  positive("lifetime_seconds", given.lifetime_seconds);
  positive("restart_seconds", given.restart_seconds);
}

inline std::string dollars_text(double dollars) {
  char text[40];
  std::snprintf(text, sizeof text, "$%.2f", dollars);
  return text;
}

inline void explain_memory(RecipeMemory const& memory, std::ostream& out) {
  auto const text = [](std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  std::string parts = text(memory.weights + memory.buffers) + " weights and buffers, " +
                      text(memory.gradients) + " gradients, " + text(memory.optimizer_state) +
                      " optimizer";
  if (!memory.knows_optimizer) parts += " and what else it keeps";
  if (memory.kept_weights > 0) parts += ", " + text(memory.kept_weights) + " kept weights";
  parts += ", " + text(memory.activations) + " activations, " + text(memory.batch) + " batch";
  print_paragraph(out, "memory: " + text(memory.peak) + " at the peak (" + parts + ")");
  if (!memory.note.empty()) print_paragraph(out, "memory: " + memory.note);
}

/// Seconds of a step: as given, or else as measured by the last fit.
template <class Trainer>
std::optional<double> step_seconds_of(Trainer& trainer, PlanInputs const& given) {
  if (given.step_seconds) return given.step_seconds;
  if constexpr (has<kinds::throughput, typename Trainer::policies>) {
    if (auto const speed = trainer.template policy<kinds::throughput>().last()) {
      if (speed->step_seconds > 0) return speed->step_seconds;
    }
  }
  return {};
}

/// Without a price of its own, that of the recipe's CostMeter, if it is known and in dollars.
template <class Trainer>
PlanInputs with_price_of(Trainer& trainer, PlanInputs given) {
  if constexpr (has<kinds::cost_meter, typename Trainer::policies>) {
    auto const& meter = trainer.template policy<kinds::cost_meter>();
    if (given.price || meter.currency != "USD") return given;
    auto const rate = meter.rate(trainer.device().is_cuda());
    if (!rate.per_hour) return given;
    given.devices = static_cast<int>(rate.devices);
    given.price = plan::PricePerDevice(*rate.per_hour / rate.devices);
  }
  return given;
}

/// Expected cost of the run on spot, against on demand; needs both prices, the time of the run and
/// the lifetime of a machine.
inline void explain_spot(double hours, PlanInputs const& given, std::ostream& out) {
  if (!given.spot || !given.price || !given.lifetime_seconds) return;
  if (!(hours > 0 && given.price->value() > 0)) return;
  plan::SpotEstimate const got =
      plan::estimate({.hours = hours,
                      .devices = static_cast<double>(given.devices),
                      .on_demand = *given.price,
                      .spot = *given.spot,
                      .preemptions_per_hour = 3600 / *given.lifetime_seconds,
                      .save = plan::Seconds(given.save_seconds.value_or(0)),
                      .restart = plan::Seconds(given.restart_seconds)});
  if (!std::isfinite(got.hours)) {
    out << "spot: machines live too short for this run to end\n";
    return;
  }
  char share[40];
  std::snprintf(share, sizeof share, "%.3g%% %s", 100 * std::abs(got.saved_share()),
                got.saved_share() >= 0 ? "less" : "more");
  out << "spot: " << dollars_text(got.cost.value()) << " expected for the run, in "
      << watch::duration_text(3600 * got.hours) << ", " << share << " than on demand\n";
}

inline void explain_cost(std::optional<std::uint64_t> steps, std::optional<double> step_seconds,
                         PlanInputs const& given, std::ostream& out) {
  if (given.save_seconds && given.lifetime_seconds) {
    double const interval = plan::daly_interval(*given.save_seconds, *given.lifetime_seconds);
    out << "checkpoint interval: " << watch::duration_text(interval) << " (" << "a save of "
        << watch::duration_text(*given.save_seconds) << ", a machine that lives "
        << watch::duration_text(*given.lifetime_seconds) << ")\n";
  }
  std::optional<double> hours;
  if (steps && step_seconds) hours = static_cast<double>(*steps) * *step_seconds / 3600;
  if (hours) {
    out << "time: " << watch::duration_text(3600 * *hours) << " (" << *steps << " steps of "
        << watch::short_number(*step_seconds) << " s)\n";
  }
  if (!given.price) return;
  double const per_hour = given.price->value() * given.devices;
  std::string text = "cost: " + dollars_text(per_hour) + " an hour";
  if (given.devices > 1) text += " for " + std::to_string(given.devices) + " devices";
  if (hours) {
    plan::Usd const dollars = *given.price * plan::DeviceHours(*hours * given.devices);
    text += ", " + dollars_text(dollars.value()) + " for the run";
  }
  out << text << '\n';
  if (hours) explain_spot(*hours, given, out);
}

}  // namespace detail

/// As explain(trainer), and below it the memory of the recipe (plan_memory) and, as far as it is
/// known, the best interval between checkpoints, the time and the cost of the run, and what it is
/// expected to cost on spot.
///
/// data  a batch as the training source gives it; or the training source, of which one batch is
///       read and which must be able to seek back. A source that knows its size gives the number of
///       steps, and so time and cost.
/// Errors  SettingsError for a circumstance that is not above 0; those of plan_memory; DataError
///         for a source without a batch.
template <class Trainer, class Data>
  requires(!std::is_base_of_v<std::ostream, std::remove_cvref_t<Data>>)
void explain(Trainer& trainer, Data&& data, PlanInputs const& given = {},
             std::ostream& out = std::cout) {
  using Module = std::remove_reference_t<decltype(trainer.module())>;
  using Objective = std::remove_reference_t<decltype(trainer.objective())>;
  detail::require(given);
  explain(trainer, out);
  std::optional<std::uint64_t> steps = trainer.settings().steps;
  if constexpr (ObjectiveFor<Objective, Module, std::remove_cvref_t<Data>>) {
    detail::explain_memory(plan_memory(trainer, data), out);
  } else {
    auto&& source = as_source(std::forward<Data>(data));
    using Source = std::remove_cvref_t<decltype(source)>;
    Cursor const start{trainer.settings().seed, 0, 0};
    source.seek(start);
    auto batch = source.next();
    source.seek(start);
    if (!batch) {
      throw DataError({.what = "the training source has no batch",
                       .where = "explain",
                       .why = "the memory of a recipe depends on the shapes of its batches",
                       .fix = "Give a source that is not empty, or a batch."});
    }
    detail::explain_memory(plan_memory(trainer, *batch), out);
    using Traits = detail::RecipeTraits<typename Trainer::policies>;
    steps =
        detail::horizon_of(trainer.settings(), static_cast<Source const&>(source), Traits::batches)
            .total_steps;
  }
  detail::explain_cost(steps, detail::step_seconds_of(trainer, given),
                       detail::with_price_of(trainer, given), out);
}

}  // namespace frugal
