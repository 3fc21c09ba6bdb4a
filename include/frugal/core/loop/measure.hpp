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
#include <frugal/core/loop/measured_parts.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/run/recipe_traits.hpp>
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
  bool is_alone = false;  ///< other processes, with which windows are divided, do not measure it
  MetricErrors errors = MetricErrors::thrown;
};

/// A policy that watches the name would see one of the two.
SettingsError named_like_a_metric(std::string const& name, std::string const& which);

/// Random numbers of a validation batch: the same in whatever process it is measured.
void seed_measuring(RunState const& run, std::uint64_t batch);

/// Divides a source that reads ahead; afterwards it is whole again.
template <class S>
class DividedReading {
 public:
  DividedReading(S& source, Division const& own) : source_(source) { divide(own); }
  DividedReading(DividedReading const&) = delete;
  DividedReading& operator=(DividedReading const&) = delete;
  ~DividedReading() { divide({}); }
  /// From the next seek on.
  void divide(Division const& own) {
    if constexpr (DividableSource<S>) source_.divide(own);
  }

 private:
  S& source_;
};

/// Consecutive batches that one process measures: so many that there are about 64 such blocks,
/// whatever the number of processes, because the sums of blocks are added up in their order.
template <class S>
std::uint64_t block_of_batches(S const& source) {
  constexpr std::uint64_t blocks = 64;
  if constexpr (SizedSource<S>) {
    auto const batches = static_cast<std::uint64_t>(source.batches());
    return std::max<std::uint64_t>((batches + blocks - 1) / blocks, 1);
  } else {
    return 8;
  }
}

/// What makes a Loss of a source's batch.
template <class Valid>
using ForwardOf = FunctionRef<Loss(batch_of<Valid> const&)>;

/// Measures this process's batches of a source, and puts together what all have measured. False if
/// the source has no batch.
template <class Parts, class Valid>
bool measure_parts(Valid& source, RunState& run, ForwardOf<Valid> forward, Measuring const& how,
                   typename Parts::Whole& whole, ScalarSpan& means) {
  EqualShare const share = how.is_trial || how.is_alone ? EqualShare{} : run.measures();
  std::uint64_t const block = block_of_batches(std::as_const(source));
  Division const own{.first = share.index * block, .count = block, .window = share.count * block};
  Cursor const start{run.settings.seed, 0, 0};
  Parts parts;
  std::uint64_t batches = 0;
  {
    DividedReading<Valid> reading(source, own);
    source.seek(start);
    std::optional<ScalarAccumulator> scalars;
    auto const end_part = [&] {
      if (scalars) scalars->read_pending();
      scalars.reset();
    };
    for (; batches < how.batches; ++batches) {
      seed_measuring(run, batches);
      if (!own.has(batches)) {
        if (skip_batch(source, [](auto const& batch) { return batch_samples(batch); }) == 0) break;
        continue;
      }
      auto batch = source.next();
      if (!batch) break;
      if (parts.empty() || parts.last().key != batches / block) {
        end_part();
        parts.begin(batches / block);
      }
      batch_to(*batch, run.device);
      Loss const loss = forward(*batch);
      parts.last().measured.add(loss, *batch, how.errors);
      if (loss.scalars.empty()) continue;
      if (!scalars) scalars.emplace().follow(parts.last().scalars);
      scalars->add(loss.scalars, *loss.weight);
    }
    end_part();
    if (batches != 0 && parts.empty()) {
      // There are fewer blocks than processes, and a metric that has seen nothing knows no shapes.
      reading.divide({});
      source.seek(start);
      seed_measuring(run, 0);
      if (auto batch = source.next()) {
        batch_to(*batch, run.device);
        whole.add(forward(*batch), *batch, how.errors);
      }
    }
  }
  // What draws next draws the same in every process.
  seed_measuring(run, std::numeric_limits<std::uint64_t>::max());
  if (batches == 0) return false;
  auto const exchange = [&](std::string const& text) {
    return share.count == 1 ? std::vector<std::string>{text} : run.texts_of_all(text);
  };
  if (!parts.join(exchange, whole, means)) {
    throw MetricError({.what = "a metric of this process has counted less than those of others",
                       .where = how.which,
                       .why = "processes divide the batches, and put together what they counted",
                       .fix = "Let each batch that has samples call `sum` equally often in the "
                              "metric's reduce."});
  }
  return true;
}

/// One pass over a source without gradients, always in the order of epoch 0.
/// `forward(batch)` returns a batch's Loss. A scalar of it with a metric's name is a SettingsError;
/// where errors are noted, a warning has the error and the metric stays.
///
/// Processes that divide windows divide the source too, unless a metric cannot be put together: then each
/// measures all. It does not name the recipe, so recipes with the same metrics share it.
template <class MetricList, MeasuredBy by = MeasuredBy::one_process, class Valid>
Metrics measure(Valid& source, RunState& run, ForwardOf<Valid> forward, Measuring const& how = {}) {
  at::NoGradGuard const no_gradients;
  EvaluationMode const mode(run.root);
  typename measurement_of<MetricList>::type measurement;
  ScalarSpan means;
  if constexpr (by == MeasuredBy::divided && measured_parts_of<MetricList>::type::can_join) {
    if (!measure_parts<typename measured_parts_of<MetricList>::type>(source, run, forward, how,
                                                                     measurement, means)) {
      refuse_empty_source(how.which, run.counters().epoch);
    }
  } else {
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
    if (measurement.empty()) refuse_empty_source(how.which, run.counters().epoch);
  }
  if constexpr (by == MeasuredBy::summed) {
    if (!how.is_trial) {
      measurement.reduce(
          [&]<class T>(Quantity what, T value) { return run.reduce(what, std::move(value)); });
      means.reduce([&](double value) { return run.reduce(Quantity::metric, value); });
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

#ifndef FRUGAL_COMPILED
#include <frugal/core/loop/measure.ipp>
#endif
