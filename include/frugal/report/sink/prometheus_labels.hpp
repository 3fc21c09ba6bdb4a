// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace frugal {

/// Labels of every series, such as {{"model", "resnet"}}.
using PrometheusLabels = std::map<std::string, std::string>;

}  // namespace frugal

namespace frugal::detail {

/// Whether Prometheus accepts a label's name, and neither frugal nor a type of metric sets it.
bool is_label_name(std::string_view name);

/// The user's labels, with the run's folder as `run`. SettingsError for a name that Prometheus
/// refuses.
PrometheusLabels checked_labels(PrometheusLabels labels, std::string const& run, char const* where);

/// What a run is told of labels that Prometheus attaches to every scrape itself; empty: it has
/// none.
std::string label_advice(PrometheusLabels const& labels, std::string_view policy);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/sink/prometheus_labels.ipp>
#endif
