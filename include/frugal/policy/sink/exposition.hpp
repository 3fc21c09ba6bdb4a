// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/sink/record.hpp>
#include <frugal/store/json_text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// Labels of every series, such as {{"job", "resnet"}}.
using PrometheusLabels = std::map<std::string, std::string>;

}  // namespace frugal

namespace frugal::detail {

/// One metric with its last values.
struct MetricFamily {
  std::string help{};
  bool counter = false;
  /// By the value of the label `event`; an empty one has no such label.
  std::map<std::string, double> values{};
};

/// The part of a name after "frugal_": [a-z0-9_], as Prometheus recommends. "validLoss@1" becomes
/// "valid_loss_1". Suffixes that stand for other kinds of metrics get "_value".
inline std::string prometheus_name(std::string_view name) {
  auto const is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  auto const is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  auto const is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string out;
  char before = '_';
  for (char const c : name) {
    if (is_upper(c)) {
      if (is_lower(before) || is_digit(before)) out += '_';
      out += static_cast<char>(c - 'A' + 'a');
    } else if (is_lower(c) || is_digit(c)) {
      out += c;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
    before = c;
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  if (out.empty()) out = "unnamed";
  for (std::string_view const suffix : {"_total", "_count", "_sum", "_bucket", "_info"}) {
    if (out.ends_with(suffix)) return out + "_value";
  }
  return out;
}

/// What a gauge of a known name becomes: Prometheus demands base units, so hours are seconds.
struct KnownMetric {
  std::string_view field, name;
  double factor;
  std::string_view help;
};
inline constexpr std::array known_metrics{
    KnownMetric{"lr_factor", "learning_rate_factor", 1, "Factor of the learning rates"},
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
inline std::string prometheus_number(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  char digits[32];
  auto const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  return {digits, end};
}

/// Escapes a label's value, or (without quotes) the text of HELP. Bytes that are not UTF-8 become
/// U+FFFD: one of them would make the whole scrape fail.
inline std::string prometheus_escaped(std::string_view text, bool quotes) {
  std::string out;
  for (char const c : as_utf8(text)) {
    if (c == '\\' || (quotes && c == '"')) out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

/// The last values of a run as Prometheus metrics, from the records of a sink.
class Exposition {
 public:
  static constexpr std::string_view prefix = "frugal_";

  void take(MetricRecord const& record) {
    counters(record);
    switch (record.kind) {
      case RecordKind::begin:
        gauge("running", 1, "1 during the fit, 0 after it");
        break;
      case RecordKind::end:
        gauge("running", 0, "1 during the fit, 0 after it");
        break;
      case RecordKind::event:
        count("events_total", "Events of the run, by name", 1 + event_count(record.name),
              record.name);
        return;  // its numbers belong to that moment
      case RecordKind::step:
      case RecordKind::epoch:
      case RecordKind::validation:
        break;
    }
    for (auto const& [field, value] : record.fields) {
      if (auto const number = MetricRecord::number_in(value)) add(record.kind, field, *number);
    }
  }
  /// Seconds since 1970, by which a scrape tells an old file from a new one.
  void stamp(double now) { gauge("last_update_timestamp_seconds", now, "Time of the last record"); }

  std::map<std::string, MetricFamily> const& families() const { return families_; }

  /// The text exposition format, version 0.0.4.
  /// Source: https://prometheus.io/docs/instrumenting/exposition_formats/
  std::string text(PrometheusLabels const& labels) const {
    std::string out;
    for (auto const& [name, family] : families_) {
      out += "# HELP " + name + " " + prometheus_escaped(family.help, false) + '\n';
      out += "# TYPE " + name + (family.counter ? " counter\n" : " gauge\n");
      for (auto const& [event, value] : family.values) {
        PrometheusLabels all = labels;
        if (!event.empty()) all["event"] = event;
        out += name + label_text(all) + ' ' + prometheus_number(value) + '\n';
      }
    }
    return out;
  }

 private:
  static std::string label_text(PrometheusLabels const& labels) {
    std::string out;
    for (auto const& [name, value] : labels) {
      out += (out.empty() ? '{' : ',') + name + "=\"" + prometheus_escaped(value, true) + '"';
    }
    return out.empty() ? out : out + '}';
  }

  void counters(MetricRecord const& record) {
    auto const number = [](std::uint64_t value) { return static_cast<double>(value); };
    Counters const& at = record.at;
    count("steps_total", "Optimizer steps", number(at.step));
    count("epochs_total", "Complete epochs", number(at.epoch));
    count("samples_total", "Samples trained on", number(at.sample));
    count("tokens_total", "Tokens trained on", number(at.token));
    count("skipped_windows_total", "Windows whose gradients overflowed", number(at.skipped));
    count("training_seconds_total", "Wall time of training", record.seconds);
  }

  void add(RecordKind kind, std::string const& field, double value) {
    if (field == "skipped" || field == "seed") return;  // a counter, and no measurement
    if (kind == RecordKind::validation) {
      return named("validation_" + field, value, "Of the last validation: " + field);
    }
    if (kind == RecordKind::epoch && field == "loss") {
      return gauge("epoch_loss", value, "Mean loss of the last epoch");
    }
    if (kind == RecordKind::step && field == "loss") {
      return gauge("loss", value, "Loss of the last step at the cadence");
    }
    for (KnownMetric const& known : known_metrics) {
      if (known.field == field) {
        return gauge(std::string(known.name), value * known.factor, std::string(known.help));
      }
    }
    named(field, value, "As in the log: " + field);
  }

  /// Of a name that the user or another policy chose. Two names that become one get different
  /// numbers, in order of first appearance.
  void named(std::string const& field, double value, std::string help) {
    auto [found, is_new] = names_.try_emplace(field);
    if (is_new) {
      std::string const base = prometheus_name(field);
      found->second = base;
      for (int i = 2; is_taken(found->second); ++i) {
        found->second = base + "_" + std::to_string(i);
      }
    }
    gauge(found->second, value, std::move(help));
  }

  /// Whether another metric has the name, or one of frugal's own would get it later.
  bool is_taken(std::string const& name) const {
    bool const own = std::any_of(known_metrics.begin(), known_metrics.end(),
                                 [&](KnownMetric const& known) { return known.name == name; });
    return own || name == "loss" || name == "epoch_loss" ||
           families_.contains(std::string(prefix) + name);
  }

  void gauge(std::string const& name, double value, std::string help) {
    put(name, value, std::move(help), false, "");
  }
  void count(std::string const& name, std::string help, double value,
             std::string const& event = "") {
    put(name, value, std::move(help), true, event);
  }
  void put(std::string const& name, double value, std::string help, bool counter,
           std::string const& event) {
    MetricFamily& family = families_[std::string(prefix) + name];
    family.help = std::move(help);
    family.counter = counter;
    family.values[event] = value;
  }
  double event_count(std::string const& event) const {
    auto const found = families_.find("frugal_events_total");
    if (found == families_.end()) return 0;
    auto const value = found->second.values.find(event);
    return value == found->second.values.end() ? 0 : value->second;
  }

  std::map<std::string, MetricFamily> families_;  ///< by full name
  std::map<std::string, std::string> names_;      ///< user's names, and what they became
};

/// Whether Prometheus accepts a label's name, and frugal does not set it.
inline bool is_label_name(std::string_view name) {
  auto const ok = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), ok) &&
         !(name[0] >= '0' && name[0] <= '9') && !name.starts_with("__") && name != "event";
}

}  // namespace frugal::detail
