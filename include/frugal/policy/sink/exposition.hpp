// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/sink/prometheus_labels.hpp>
#include <frugal/policy/sink/prometheus_names.hpp>
#include <frugal/policy/sink/record.hpp>
#include <frugal/version.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace frugal::detail {

/// One metric with its last values.
struct MetricFamily {
  std::string help{};
  bool counter = false;
  /// By the value of `label`; an empty one has no such label.
  std::map<std::string, double> values{};
  std::string_view label = "event";
};

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
      for (auto const& [kind, value] : family.values) {
        PrometheusLabels all = labels;
        if (!kind.empty()) all[std::string(family.label)] = kind;
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
      return named(kind, "validation_" + field, value, "Of the last validation: " + field);
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
    named(RecordKind::step, field, value, "As in the log: " + field);
  }

  /// Adds a value under a name that the user or another policy chose. Two names that become one get
  /// different numbers, in order of first appearance.
  void named(RecordKind kind, std::string const& field, double value, std::string help) {
    auto [found, is_new] = names_.try_emplace({kind, field});
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
  /// The user's names, and what they became.
  std::map<std::pair<RecordKind, std::string>, std::string> names_;
};

}  // namespace frugal::detail
