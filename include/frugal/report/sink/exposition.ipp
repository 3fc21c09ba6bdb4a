// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/sink/exposition.hpp>

#include <frugal/base/utf8.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace frugal::detail {

FRUGAL_INLINE bool is_label_name(std::string_view name) {
  auto const ok = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), ok) &&
         !(name[0] >= '0' && name[0] <= '9') && !name.starts_with("__") && name != "event" &&
         name != "le" && name != "quantile";
}

FRUGAL_INLINE PrometheusLabels checked_labels(PrometheusLabels labels, std::string const& run,
                                              char const* where) {
  for (auto const& [name, value] : labels) {
    if (is_label_name(name)) continue;
    throw SettingsError({.what = "the label \"" + name + "\" has an invalid name",
                         .where = where,
                         .why = "names are letters, digits and _, do not begin with a digit or "
                                "with __, \"event\" is frugal's own, and \"le\" and \"quantile\" "
                                "belong to histograms and summaries",
                         .fix = "Rename it."});
  }
  if (!run.empty()) labels.try_emplace("run", run);
  return labels;
}

FRUGAL_INLINE std::string label_advice(PrometheusLabels const& labels, std::string_view policy) {
  std::string found;
  for (char const* const name : {"instance", "job"}) {
    if (labels.contains(name)) found += (found.empty() ? "" : " and ") + std::string(name);
  }
  if (found.empty()) return found;
  return std::string(policy) + " has the label " + found +
         ", which Prometheus attaches to what it scrapes: it renames this one to exported_" +
         "<label>, unless the scrape has honor_labels: true. Choose another name, such as model";
}

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

FRUGAL_INLINE std::string prometheus_name(std::string_view name) {
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

FRUGAL_INLINE std::string prometheus_number(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  char digits[32];
  auto const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  return {digits, end};
}

FRUGAL_INLINE std::string prometheus_escaped(std::string_view text, bool quotes) {
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

}  // namespace frugal::detail
