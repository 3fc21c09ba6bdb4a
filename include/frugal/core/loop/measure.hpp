// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>

#include <cstddef>
#include <limits>
#include <string>

#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/loop/measurement.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/run/scalar_accumulator.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/data/batch.hpp>
#include <frugal/data/source.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// How much of a source is measured, and what for.
struct Measuring {
  std::string which = "validation";  ///< for errors and warnings
  std::size_t batches = std::numeric_limits<std::size_t>::max();
  bool is_trial = false;  ///< the results are thrown away: no other process joins in, no warnings
  MetricErrors errors = MetricErrors::thrown;
};

/// A policy that watches the name would see one of the two.
FRUGAL_INLINE SettingsError named_like_a_metric(std::string const& name, std::string const& which) {
  return SettingsError(
      {.what = "the objective's scalar '" + name + "' and the metric '" + name + "' have one name",
       .where = which,
       .why = "a validation has one result of a name, which is the metric's",
       .fix = "Rename the scalar in Loss::scalars, or remove the metric from "
              "Validate<...>."});
}

/// One pass over a source without gradients, always in the order of epoch 0.
/// `forward(batch)` returns a batch's Loss. A scalar of it with a metric's name is a SettingsError;
/// where errors are noted, a warning has the error and the metric stays.
template <class MetricList, class Valid, class Run, class Forward>
Metrics measure(Valid& source, Run& run, Forward&& forward, Measuring const& how = {}) {
  at::NoGradGuard const no_gradients;
  EvaluationMode const mode(base_module(run.module));
  typename measurement_of<MetricList>::type measurement;
  ScalarSpan means;
  ScalarAccumulator scalars;
  scalars.follow(means);
  // It may be the training source, which processes divide.
  if constexpr (DividableSource<Valid>) source.divide({});
  source.seek(Cursor{run.settings.seed, 0, 0});
  for (std::size_t i = 0; i < how.batches; ++i) {
    auto batch = source.next();
    if (!batch) break;
    batch_to(*batch, run.device);
    Loss const loss = forward(*batch);
    measurement.add(loss, *batch, how.errors);
    if (!loss.scalars.empty()) scalars.add(loss.scalars, *loss.weight);
  }
  scalars.read_pending();
  if (measurement.empty()) refuse_empty_source(how.which, run.counters.epoch);
  if constexpr (requires { typename Run::Engine; }) {
    if constexpr (Run::Engine::template provides<service::reduce>) {
      // Processes that divide windows each measure all of a validation.
      if (!how.is_trial && !Run::divides) {
        measurement.reduce(
            [&]<class T>(Quantity what, T value) { return run.reduce(what, value); });
        means.reduce([&](double value) { return run.reduce(Quantity::metric, value); });
      }
    }
  }
  auto const warn = [&](std::string const& text) {
    if (!how.is_trial) run.warn(how.which + ": " + text);
  };
  Metrics found = measurement.result(warn, how.errors);
  for (auto const& [name, value] : means.take()) {
    if (!found.has(name)) {
      found.set(name, value);
      continue;
    }
    SettingsError const error = named_like_a_metric(name, how.which);
    if (how.errors == MetricErrors::thrown) throw error;
    warn(error.what());
  }
  return found;
}

}  // namespace frugal::detail
