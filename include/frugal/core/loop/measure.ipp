// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/loop/measure.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/inline.hpp>

#include <array>
#include <span>

namespace frugal::detail {

FRUGAL_INLINE SettingsError named_like_a_metric(std::string const& name, std::string const& which) {
  return SettingsError(
      {.what = "the objective's scalar '" + name + "' and the metric '" + name + "' have one name",
       .where = which,
       .why = "a validation has one result of a name, which is the metric's",
       .fix = "Rename the scalar in Loss::scalars, or remove the metric from "
              "Validate<...>."});
}

FRUGAL_INLINE void seed_measuring(RunState const& run, std::uint64_t batch) {
  constexpr std::uint64_t measuring = 2;
  std::array<std::uint64_t, 6> const all{
      run.settings.seed, run.counters().epoch, run.counters().position, run.counters().step, batch,
      measuring};
  at::manual_seed(Hash::of(std::as_bytes(std::span(all))));
}

}  // namespace frugal::detail
