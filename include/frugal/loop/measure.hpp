// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>

#include <string>

#include <frugal/data/batch.hpp>
#include <frugal/data/source.hpp>
#include <frugal/libtorch/modes.hpp>
#include <frugal/libtorch/parameters.hpp>
#include <frugal/loop/measurement.hpp>
#include <frugal/run/failure.hpp>
#include <frugal/run/metrics.hpp>
#include <frugal/run/objective.hpp>
#include <frugal/run/scalar_ledger.hpp>
#include <frugal/run/services.hpp>

namespace frugal::detail {

/// One pass over a source without gradients, always in the order of epoch 0.
/// `forward(batch)` returns a batch's Loss.
template <class MetricList, class Valid, class Run, class Forward>
Metrics measure(Valid& source, Run& run, Forward&& forward,
                std::string const& which = "validation") {
  at::NoGradGuard const no_gradients;
  EvaluationMode const mode(base_module(run.module));
  typename measurement_of<MetricList>::type measurement;
  ScalarSpan means;
  ScalarLedger scalars;
  scalars.follow(means);
  source.seek(Cursor{run.settings.seed, 0, 0});
  while (auto batch = source.next()) {
    batch_to(*batch, run.device);
    Loss const loss = forward(*batch);
    measurement.add(loss, *batch);
    if (!loss.scalars.empty()) scalars.add(loss.scalars, *loss.weight);
  }
  scalars.settle();
  if (measurement.empty()) refuse_empty_source(which, run.counters.epoch);
  if constexpr (requires { typename Run::Engine; }) {
    if constexpr (Run::Engine::template provides<service::reduce>) {
      measurement.reduce([&]<class T>(Quantity what, T value) { return run.reduce(what, value); });
      means.reduce([&](double value) { return run.reduce(Quantity::metric, value); });
    }
  }
  Metrics found = measurement.result();
  for (auto const& [name, value] : means.take()) found.set(name, value);
  return found;
}

}  // namespace frugal::detail
