// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace frugal::detail {

/// The keys that a line of a log may have whatever the recipe measures. A user's metric or scalar
/// of such a name would be a second value under one key.
inline constexpr std::array<std::string_view, 17> log_keys{"event",
                                                           "step",
                                                           "epoch",
                                                           "samples",
                                                           "seconds",
                                                           "loss",
                                                           "lr_factor",
                                                           "learning_rate",
                                                           "gradient_norm",
                                                           "skipped",
                                                           "step_seconds",
                                                           "samples_per_second",
                                                           "tokens_per_second",
                                                           "flops_per_step",
                                                           "flops_per_second",
                                                           "utilisation",
                                                           "data_wait"};

/// Those of parameter groups included, which begin with "lr/".
constexpr bool is_log_key(std::string_view name) {
  return name.starts_with("lr/") ||
         std::find(log_keys.begin(), log_keys.end(), name) != log_keys.end();
}

/// Why such a name is refused.
inline constexpr std::string_view log_key_taken = "a log's line has another value of that name";

/// SettingsError if a line of a log cannot have the name. `what`: "a gauge".
void require_log_name(std::string_view what, std::string_view name, std::string_view where);

/// MetricError if a line of a log cannot have one of the names of a policy's metrics, or two are alike.
void require_metric_names(std::string const& policy, std::vector<std::string> const& names);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/log_keys.ipp>
#endif
