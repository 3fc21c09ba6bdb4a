// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/sink/exposition.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/sink/prometheus_names.hpp>

namespace frugal::detail {

FRUGAL_INLINE void Exposition::take(MetricRecord const& record) {
  count_work(record);
  switch (record.kind) {
    case RecordKind::begin:
      gauge("running", 1);
      break;
    case RecordKind::end:
      gauge("running", 0);
      break;
    case RecordKind::event:
      count("events_total", 1, record.name);
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

FRUGAL_INLINE std::string Exposition::text(PrometheusLabels const& labels) const {
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

FRUGAL_INLINE std::string_view Exposition::help_of(std::string_view name) {
  for (OwnMetric const& each : own_metrics) {
    if (each.name == name) return each.help;
  }
  for (KnownMetric const& each : known_metrics) {
    if (each.name == name) return each.help;
  }
  return "A value of the run's log";
}

FRUGAL_INLINE std::string Exposition::label_text(PrometheusLabels const& labels) {
  std::string out;
  for (auto const& [name, value] : labels) {
    out += (out.empty() ? '{' : ',') + name + "=\"" + prometheus_escaped(value, true) + '"';
  }
  return out.empty() ? out : out + '}';
}

FRUGAL_INLINE void Exposition::count_work(MetricRecord const& record) {
  bool const begins = record.kind == RecordKind::begin;
  auto const work = [&](std::string const& name, auto now, auto before) {
    gauge("run_" + name, static_cast<double>(now));
    bool const more = !begins && now > before;
    count(name + "_total", more ? static_cast<double>(now - before) : 0);
  };
  Counters const& at = record.at;
  work("steps", at.step, at_.step);
  work("epochs", at.epoch, at_.epoch);
  work("samples", at.sample, at_.sample);
  work("tokens", at.token, at_.token);
  work("skipped_windows", at.non_finite_windows, at_.non_finite_windows);
  work("training_seconds", record.seconds, seconds_);
  at_ = at;
  seconds_ = record.seconds;
}

FRUGAL_INLINE void Exposition::add(RecordKind kind, std::string const& field, double value) {
  if (field == "skipped" || field == "seed") return;  // a counter, and no measurement
  if (kind == RecordKind::validation) {
    return named(kind, "validation_" + field, value);
  }
  if (kind == RecordKind::epoch && field == "loss") {
    return gauge("epoch_loss", value);
  }
  if (kind == RecordKind::step && field == "loss") {
    return gauge("loss", value);
  }
  for (KnownMetric const& known : known_metrics) {
    if (known.field == field) {
      return gauge(std::string(known.name), value * known.factor);
    }
  }
  named(RecordKind::step, field, value);
}

FRUGAL_INLINE void Exposition::named(RecordKind kind, std::string const& field, double value) {
  auto [found, is_new] = names_.try_emplace({kind, field});
  if (is_new) {
    std::string const base = prometheus_name(field);
    found->second = base;
    for (int i = 2; is_taken(found->second); ++i) {
      found->second = base + "_" + std::to_string(i);
    }
  }
  gauge(found->second, value);
}

FRUGAL_INLINE bool Exposition::is_taken(std::string const& name) const {
  auto const is_own = [&](auto const& each) {
    return each.name == name || each.name == name + "_total";
  };
  return std::any_of(known_metrics.begin(), known_metrics.end(), is_own) ||
         std::any_of(own_metrics.begin(), own_metrics.end(), is_own) ||
         families_.contains(std::string(prefix) + name);
}

FRUGAL_INLINE void Exposition::count(std::string const& name, double more,
                                     std::string const& event) {
  MetricFamily& counter = family(name);
  counter.counter = true;
  counter.values[event] += more;
}

FRUGAL_INLINE MetricFamily& Exposition::family(std::string const& name) {
  MetricFamily& found = families_[std::string(prefix) + name];
  if (found.help.empty()) found.help = help_of(name);
  return found;
}

}  // namespace frugal::detail
