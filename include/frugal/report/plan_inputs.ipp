// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan_inputs.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void require(PlanInputs const& given) {
  auto const refuse = [](std::string const& name, double value, char const* rule) {
    throw SettingsError({.what = name + " is " + detail::general(value, 6),
                         .where = "explain",
                         .why = "it is a price, a time, a rate or a number of devices",
                         .fix = std::string("Give ") + rule + ", or leave it out."});
  };
  auto const positive = [&](char const* name, std::optional<double> value) {
    if (value && !(*value > 0 && std::isfinite(*value))) refuse(name, *value, "more than 0");
  };
  auto const at_least_0 = [&](char const* name, std::optional<double> value) {
    if (value && !(*value >= 0 && std::isfinite(*value))) refuse(name, *value, "0 or more");
  };
  if (given.price) at_least_0("price", given.price->value());
  if (given.spot) at_least_0("spot", given.spot->value());
  positive("devices", given.devices);
  positive("step_seconds", given.step_seconds);
  positive("save_seconds", given.save_seconds);
  positive("lifetime_seconds", given.lifetime_seconds);
  at_least_0("restart_seconds", given.restart_seconds);
  positive("disk", given.disk.value());
  at_least_0("link", given.link.value());
  if (given.overlap > 1) refuse("overlap", given.overlap, "a share of at most 1");
  at_least_0("overlap", given.overlap);
  at_least_0("tokens_per_sample", given.tokens_per_sample);
  at_least_0("other_per_hour", given.other_per_hour);
}

}  // namespace frugal::detail
