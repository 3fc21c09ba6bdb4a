// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/sink/record.hpp>
#include <frugal/version.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// Labels of every series, such as {{"model", "resnet"}}.
using PrometheusLabels = std::map<std::string, std::string>;

}  // namespace frugal

namespace frugal::detail {

/// Whether Prometheus accepts a label's name, and neither frugal nor a type of metric sets it.
bool is_label_name(std::string_view name);

/// The user's labels, with the run directory as `run`. SettingsError for a name that Prometheus
/// refuses.
PrometheusLabels checked_labels(PrometheusLabels labels, std::string const& run, char const* where);

/// What a run is told of labels that Prometheus attaches to every scrape itself; empty: it has
/// none.
std::string label_advice(PrometheusLabels const& labels, std::string_view policy);

/// One metric with its last values.
struct MetricFamily {
  std::string help{};
  bool counter = false;
  /// By the value of `label`; an empty one has no such label.
  std::map<std::string, double> values{};
  std::string_view label = "event";
};

/// A metric of frugal's own, besides those of known_metrics.
struct OwnMetric {
  std::string_view name, help;
  bool measured = false;  ///< a value to keep; each begin sets the others
};
inline constexpr std::array own_metrics{
    OwnMetric{"running", "1 during the fit, 0 after it"},
    OwnMetric{"events_total", "Events of the run in this process, by name"},
    OwnMetric{"last_update_timestamp_seconds", "Time of the last record"},
    OwnMetric{"loss", "Loss of the last step at the cadence", true},
    OwnMetric{"epoch_loss", "Mean loss of the last epoch", true},
    OwnMetric{"steps_total", "Optimizer steps of this process"},
    OwnMetric{"epochs_total", "Complete epochs of this process"},
    OwnMetric{"samples_total", "Samples that this process trained on"},
    OwnMetric{"tokens_total", "Tokens that this process trained on"},
    OwnMetric{"skipped_windows_total", "Windows of this process whose gradients overflowed"},
    OwnMetric{"training_seconds_total", "Wall time of training of this process"},
    OwnMetric{"run_steps", "Optimizer steps of the run"},
    OwnMetric{"run_epochs", "Complete epochs of the run"},
    OwnMetric{"run_samples", "Samples that the run has trained on"},
    OwnMetric{"run_tokens", "Tokens that the run has trained on"},
    OwnMetric{"run_skipped_windows", "Windows of the run whose gradients overflowed"},
    OwnMetric{"run_training_seconds", "Wall time of training of the run"}};

/// The last values of a run as Prometheus metrics, from the records of a sink.
class Exposition {
 public:
  static constexpr std::string_view prefix = "frugal_";

  Exposition() {
    MetricFamily& build = families_[std::string(prefix) + "build_info"];
    build.help = "1, with the version of frugal";
    build.label = "version";
    build.values[std::string(version)] = 1;
  }

  void take(MetricRecord const& record);
  /// Seconds since 1970, by which a scrape tells an old file from a new one.
  void stamp(double now) { gauge("last_update_timestamp_seconds", now); }

  std::map<std::string, MetricFamily> const& families() const { return families_; }

  /// The text exposition format, version 0.0.4.
  /// Source: https://prometheus.io/docs/instrumenting/exposition_formats/
  std::string text(PrometheusLabels const& labels) const;

  /// The last measured values, for a run that resumes. Counters begin at 0 in each process.
  /// `keeps`: what is loaded is read and left, by a return within the run.
  template <class Archive>
  void persist(Archive& archive, bool keeps) {
    std::vector<std::string> names, fields, became;
    std::vector<double> values;
    std::vector<std::uint64_t> kinds;
    if constexpr (!Archive::loading) {
      for (auto const& [name, family] : families_) {
        auto const value = family.values.find("");
        std::string const plain = name.substr(prefix.size());
        bool const set_again = std::any_of(
            own_metrics.begin(), own_metrics.end(),
            [&](OwnMetric const& each) { return each.name == plain && !each.measured; });
        if (set_again || value == family.values.end()) continue;
        names.push_back(plain);
        values.push_back(value->second);
      }
      for (auto const& [from, name] : names_) {
        kinds.push_back(static_cast<std::uint64_t>(from.first));
        fields.push_back(from.second);
        became.push_back(name);
      }
    }
    archive("names", names);
    archive("values", values);
    archive("kinds", kinds);
    archive("fields", fields);
    archive("became", became);
    if (!Archive::loading || keeps) return;
    for (std::size_t i = 0; i < std::min(kinds.size(), std::min(fields.size(), became.size()));
         ++i) {
      names_[{static_cast<RecordKind>(kinds[i]), fields[i]}] = became[i];
    }
    for (std::size_t i = 0; i < std::min(names.size(), values.size()); ++i) {
      gauge(names[i], values[i]);
    }
  }

 private:
  /// Of the name alone: node_exporter and OpenMetrics allow a metric one help, whichever runs have
  /// it.
  static std::string_view help_of(std::string_view name);

  static std::string label_text(PrometheusLabels const& labels);

  /// A counter of Prometheus may only grow, but for a restart at 0: it counts the work of this
  /// process. How far the run is, which a resume raises and a Rollback lowers, is a gauge.
  void count_work(MetricRecord const& record);

  void add(RecordKind kind, std::string const& field, double value);

  /// Adds a value under a name that the user or another policy chose. Two names that become one get
  /// different numbers, in order of first appearance.
  void named(RecordKind kind, std::string const& field, double value);

  /// Whether another metric has the name, or one of frugal's own would get it later. OpenMetrics
  /// calls a counter by its name without _total.
  bool is_taken(std::string const& name) const;

  void gauge(std::string const& name, double value) { family(name).values[""] = value; }
  void count(std::string const& name, double more, std::string const& event = "");
  MetricFamily& family(std::string const& name);

  std::map<std::string, MetricFamily> families_;  ///< by full name
  /// The user's names, and what they became.
  std::map<std::pair<RecordKind, std::string>, std::string> names_;
  Counters at_{};       ///< of the last record
  double seconds_ = 0;  ///< likewise
};

}  // namespace frugal::detail

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
#include <frugal/report/sink/exposition.ipp>
#endif
