// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

// Names, numbers and texts as Prometheus writes them.
namespace frugal::detail {

/// The part of a name after "frugal_": [a-z0-9_], as Prometheus recommends. "validLoss@1" becomes
/// "valid_loss_1". Suffixes that stand for other kinds of metrics get "_value".
std::string prometheus_name(std::string_view name);

/// The name and the factor of a known gauge in Prometheus, which demands base units: hours become
/// seconds.
struct KnownMetric {
  std::string_view field, name;
  double factor;
  std::string_view help;
};
inline constexpr std::array known_metrics{
    KnownMetric{"lr_factor", "learning_rate_factor", 1, "Factor of the learning rates"},
    KnownMetric{"learning_rate", "learning_rate", 1, "Learning rate of the first parameter group"},
    KnownMetric{"hours", "billed_seconds", 3600, "Time of the run that is billed, so far"},
    KnownMetric{"hours_projected", "projected_billed_seconds", 3600,
                "Time that is billed, to the end of the run"},
    KnownMetric{"dollars", "cost_dollars", 1, "Cost of the run so far, in US dollars"},
    KnownMetric{"dollars_projected", "projected_cost_dollars", 1, "Cost to the end of the run"},
    KnownMetric{"kilowatt_hours", "energy_joules", 3.6e6, "Energy used so far"},
    KnownMetric{"kilowatt_hours_projected", "projected_energy_joules", 3.6e6,
                "Energy to the end of the run"},
    KnownMetric{"kg_co2", "emissions_grams", 1000, "CO2 emitted so far"},
    KnownMetric{"memory_bytes", "memory_bytes", 1, "Memory of the process"},
    KnownMetric{"device_memory_bytes", "device_memory_bytes", 1, "Memory of the device's tensors"},
    KnownMetric{"device_idle", "device_idle_ratio", 1, "Share of time without work on the device"},
    KnownMetric{"utilisation", "utilisation_ratio", 1, "Share of the device's peak"},
    KnownMetric{"data_wait", "data_wait_ratio", 1, "Share of time spent waiting for data"},
    KnownMetric{"step_seconds", "step_seconds", 1, "Time of one optimizer step"}};

/// A number as Prometheus writes it.
std::string prometheus_number(double number);

/// Escapes a label's value, or (without quotes) the text of HELP. Bytes that are not UTF-8 become
/// U+FFFD: one of them would make the whole scrape fail.
std::string prometheus_escaped(std::string_view text, bool quotes);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/sink/prometheus_names.ipp>
#endif
