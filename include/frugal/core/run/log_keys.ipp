// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/log_keys.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE void require_log_name(std::string_view what, std::string_view name,
                                    std::string_view where) {
  if (!name.empty() && !is_log_key(name)) return;
  throw SettingsError(
      {.what = std::string(what) + " is called '" + std::string(name) + "'",
       .where = std::string(where),
       .why = name.empty() ? "a log's line has to name it" : std::string(log_key_taken),
       .fix = "Give it another name."});
}

FRUGAL_INLINE void require_metric_names(std::string const& policy,
                                        std::vector<std::string> const& names) {
  for (auto name = names.begin(); name != names.end(); ++name) {
    bool const twice = std::find(names.begin(), name, *name) != name;
    if (!twice && !name->empty() && !is_log_key(*name)) continue;
    throw MetricError({.what = twice ? "two metrics are called '" + *name + "'"
                                     : "a metric is called '" + *name + "'",
                       .where = policy + "::metrics[" + std::to_string(name - names.begin()) + "]",
                       .why = twice ? "a log and a policy that watches could not tell them apart"
                              : name->empty() ? "a log's line has to name it"
                                              : std::string(log_key_taken),
                       .fix = "Give it another name: set the number that the name has, or let "
                              "own_name() return another one."});
  }
}

}  // namespace frugal::detail
