// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <frugal/core/compose/composition.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/report/plan/all_reduce.hpp>
#include <frugal/report/plan/amount_text.hpp>
#include <frugal/report/plan/money.hpp>

namespace frugal {

/// What explain cannot find out by itself. What is left out is not printed.
struct PlanInputs {
  std::optional<plan::PricePerDevice> price{};  ///< USD per hour of a device, on demand; else
                                                ///< CostMeter's
  std::optional<int> devices{};                 ///< that train; else CostMeter's, else 1
  std::optional<double> step_seconds{};  ///< of a step of one device; else by Throughput's last fit
  std::optional<double> save_seconds{};  ///< for which a checkpoint stops the training; else its
                                         ///< bytes by `disk`
  std::optional<double> lifetime_seconds{};    ///< of the job: mean time between two preemptions,
                                               ///< whichever of its machines they take
  std::optional<plan::PricePerDevice> spot{};  ///< the price where the job lives so long
  double restart_seconds = 300;                ///< from a preemption to the next step
  plan::GigabytesPerSecond disk{1};            ///< at which a checkpoint is written
  plan::GigabytesPerSecond link{};  ///< between devices, which then average gradients; 0:
                                    ///< no communication
  plan::GradientFormat gradients = plan::GradientFormat::FP32;  ///< as they travel
  double overlap = 0;            ///< share of a step during which gradients travel
  double tokens_per_sample = 0;  ///< of a language model, for the compute-optimal comparison
  std::optional<double> other_per_hour{};  ///< USD: storage, network; else CostMeter's
};

namespace detail {

void require(PlanInputs const& given);

/// What an hour costs, by PlanInputs and CostMeter together.
struct PlanPrice {
  std::optional<plan::PricePerDevice> on_demand{};
  std::optional<plan::PricePerDevice> spot{};
  int devices = 1;            ///< that train
  double billed = 1;          ///< devices that are paid for: an offer per node bills whole nodes
  double other_per_hour = 0;  ///< on demand and on spot alike
  double idle_seconds = 0;    ///< billed before the start
  bool pays_spot = false;     ///< CostMeter bills the spot price
  std::vector<std::string> notes{};

  /// Adds the other costs, divided among the devices that are paid for.
  plan::PricePerDevice whole(plan::PricePerDevice price) const {
    return price + plan::PricePerDevice(other_per_hour / billed);
  }
};

/// What PlanInputs leaves out is CostMeter's, if the recipe has one and it counts in dollars.
template <class Trainer>
PlanPrice price_of(Trainer& trainer, PlanInputs const& given) {
  PlanPrice out{.on_demand = given.price,
                .spot = given.spot,
                .devices = given.devices.value_or(1),
                .billed = static_cast<double>(given.devices.value_or(1)),
                .other_per_hour = given.other_per_hour.value_or(0)};
  if constexpr (has<kinds::cost_meter, typename Trainer::policies>) {
    auto meter = trainer.template policy<kinds::cost_meter>();
    if (meter.currency != "USD") return out;
    if (given.devices) meter.devices = static_cast<unsigned>(*given.devices);
    bool const on_gpu = trainer.device().is_cuda();
    auto const rate = meter.rate(on_gpu);
    out.devices = static_cast<int>(meter.devices.value_or(1));
    out.billed = given.price ? out.devices : rate.devices;
    out.other_per_hour = given.other_per_hour.value_or(meter.other_per_hour);
    out.idle_seconds = meter.idle;
    if (meter.price_per_kilowatt_hour > 0) {
      out.notes.push_back("not in the cost: electricity at " +
                          plan::dollars_text(meter.price_per_kilowatt_hour) +
                          " a kilowatt-hour, which CostMeter measures during the run");
    }
    if (given.price) return out;
    if (!rate.warning.empty()) out.notes.push_back("caution: " + rate.warning);
    auto const per_device = [&](auto const& of) {
      return plan::PricePerDevice((*of.per_hour - meter.other_per_hour) / of.devices);
    };
    if (!rate.per_hour) return out;
    out.on_demand = per_device(rate);
    if (!meter.spot) return out;
    meter.spot = false;  // the same offer on demand; a price that was set has no spot price
    auto const on_demand = meter.rate(on_gpu);
    if (on_demand.source == rate.source) return out;
    out.pays_spot = true;
    if (!given.spot) out.spot = out.on_demand;
    out.on_demand = per_device(on_demand);
  }
  return out;
}

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan_inputs.ipp>
#endif
