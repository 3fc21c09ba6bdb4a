// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/function_ref.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/measure/measurement.hpp>
#include <frugal/core/measure/valid_sources.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/run/scalar_accumulator.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// How much of a source is measured, and what for.
struct Measuring {
  std::string which = "validation";  ///< for errors and warnings
  std::size_t batches = std::numeric_limits<std::size_t>::max();
  bool is_trial = false;  ///< the results are thrown away: no other process joins in, no warnings
  bool is_alone = false;  ///< other processes, with which this one trains, do not measure it
  MetricErrors errors = MetricErrors::thrown;
};

/// A policy that watches the name would see one of the two.
SettingsError named_like_a_metric(std::string const& name, std::string const& which);

/// Of an error that is being handled: says that it is of this source, and throws it again.
[[noreturn]] void rethrow_of_source(Measuring const& how);

/// What makes a Loss of a source's batch.
template <class Valid>
using ForwardOf = FunctionRef<Loss(batch_of<Valid> const&)>;

/// Measures a whole source in this process. Throws where it has no batch.
template <class Valid, class Measurement>
void measure_all(Valid& source, RunState& run, ForwardOf<Valid> forward, Measuring const& how,
                 Measurement& into, ScalarSpan& means) {
  ScalarAccumulator scalars;
  scalars.follow(means);
  // It may be the training source, of which a process trains its own batches.
  if constexpr (DividableSource<Valid>) source.divide({});
  source.seek(Cursor{run.settings.seed, 0, 0});
  for (std::size_t i = 0; i < how.batches; ++i) {
    auto batch = source.next();
    if (!batch) break;
    batch_to(*batch, run.device);
    Loss const loss = forward(*batch);
    into.add(loss, *batch, how.errors);
    if (!loss.scalars.empty()) scalars.add(loss.scalars, *loss.weight);
  }
  scalars.read_pending();
  if (into.empty()) refuse_empty_source(how.which, run.counters().epoch);
}

/// One pass over a source without gradients, always in the order of epoch 0. `forward(batch)` returns a
/// batch's Loss. A scalar of it with a metric's name is a SettingsError; where errors are noted, a warning has
/// the error and the metric stays.
///
/// `Strategy`: whether other processes join in (OneProcess). It does not name the recipe, so recipes with the
/// same metrics share it. `metrics` have seen nothing.
template <class MetricList, class Strategy, class Valid>
Metrics measure(Valid& source, RunState& run, ForwardOf<Valid> forward, Measuring const& how = {},
                typename measurement_of<MetricList>::metrics const& metrics = {}) {
  at::NoGradGuard const no_gradients;
  EvaluationMode const mode(run.root);
  typename measurement_of<MetricList>::type measurement(metrics);
  ScalarSpan means;
  try {
    Strategy::template measure<MetricList>(source, run, forward, how, measurement, means);
  } catch (...) {
    rethrow_of_source(how);
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

#ifndef FRUGAL_COMPILED
#include <frugal/core/measure/measure.ipp>
#endif
