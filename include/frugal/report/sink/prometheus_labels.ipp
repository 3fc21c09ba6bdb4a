// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/sink/prometheus_labels.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>

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

}  // namespace frugal::detail
