// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/core/measure/measure.hpp>
#include <frugal/core/measure/measured_parts.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/processes.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/run/scalar_accumulator.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// Random numbers of a validation batch: the same in whatever process it is measured.
inline void seed_measuring(RunState const& run, std::uint64_t batch) {
  constexpr std::uint64_t measuring = 2;
  std::array<std::uint64_t, 6> const all{
      run.settings.seed, run.counters().epoch, run.counters().position, run.counters().step, batch,
      measuring};
  at::manual_seed(Hash::of(std::as_bytes(std::span(all))));
}

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

/// Measures this process's batches of a source, and puts together what all have measured. Throws
/// where the source has no batch.
template <class Parts, class Valid>
void measure_divided(Valid& source, RunState& run, ForwardOf<Valid> forward, Measuring const& how,
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
  if (batches == 0) refuse_empty_source(how.which, run.counters().epoch);
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
}

}  // namespace frugal::detail
