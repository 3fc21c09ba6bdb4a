// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <frugal/core/compose/composition.hpp>
#include <frugal/core/libtorch/host_meter.hpp>
#include <frugal/core/loop/interruption.hpp>
#include <frugal/core/loop/passes.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/run/run_snapshot.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/labels.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::detail {

/// How much memory a step of the batch needs, compared with others: its tokens, and of a batch that
/// counts them padding as well.
template <class B>
std::int64_t memory_of(B const& batch) {
  if constexpr (CountsLabels<B> && ShowsTensors<B>) {
    std::int64_t elements = 0;
    batch_tensors(batch, [&](at::Tensor const& tensor) { elements += tensor.numel(); });
    return elements;
  } else {
    return batch_tokens(batch);
  }
}

/// The batch with the most tokens among the next few of a source: it needs the most memory. Nothing
/// if the source has none.
template <class Train>
std::optional<batch_of<Train>> largest_batch(Train& source, std::size_t look) {
  using Batch = batch_of<Train>;
  std::optional<Batch> largest;
  for (std::size_t i = 0; i < look; ++i) {
    auto batch = source.next();
    if (!batch) break;
    if (!largest || memory_of(*batch) > memory_of(*largest)) {
      largest.emplace(*std::move(batch));
    }
  }
  return largest;
}

/// Executes a window of Accumulate<Auto>: one batch of the source, in as many micro-batches as
/// memory requires.
template <class Passes>
class SplitExecutor {
  using Context = typename Passes::Context;
  using Batch = typename Passes::Batch;
  static constexpr bool probes = frugal::detail::has<kinds::auto_batch, typename Context::policies>;

  static_assert(Splittable<Batch>,
                "frugal: Accumulate<Auto> splits batches, and does not know all tensors of this "
                "batch type. Give it a member `void each_tensor(auto&& f) { f(a, b); }`, or its "
                "batch_traits `static B narrow(B const&, std::int64_t begin, std::int64_t "
                "count)`.");

 public:
  explicit SplitExecutor(Passes& passes) : run_(passes.run()), passes_(passes) {}

  template <class Train>
  StepOutcome train(Train& source) {
    auto batch = source.next();
    if (!batch) return StepOutcome::nothing;
    passes_.open();
    in_parts(
        *batch,
        [this](Batch& part, MicroBatchIndex where) {
          passes_.template train<HookScope::all>(part, where);
        },
        [this] { undo(); });
    passes_.keep(std::move(*batch));
    return passes_.finish();
  }

  at::Tensor reevaluate() {
    return passes_.reevaluate([this](auto const& batches, auto const& pass) {
      // clang 19 does not see the use of this in an unqualified name
      this->in_parts(batches.front(), [&](Batch& part, MicroBatchIndex) { pass(part); }, [] {});
    });
  }

  /// Finds the micro-batch size with trial steps that are undone. Leaves the source at `start`.
  template <class Train>
  void set_up(Train& source, Cursor start) {
    if constexpr (probes) probe(source, start);
  }

 private:
  template <class Train>
  void probe(Train& source, Cursor start) {
    auto& split = run_.engine->template state<kinds::accumulate>();
    if (split.known()) return;
    auto& prober = run_.engine->template state<kinds::auto_batch>();
    source.seek(start);
    auto const batch = largest_batch(source, prober.look());
    source.seek(start);
    if (!batch) return;
    std::int64_t const samples = batch_samples(*batch);
    std::int64_t found = 0;
    // The snapshot lies in host memory: a search for the device's memory must not fill it.
    std::int64_t const live = HostMeter::live();
    RunSnapshot before;
    before.take(run_, Part::tried);
    std::int64_t const held = HostMeter::live() - live;
    split.trying(true);
    auto const step = [&](std::int64_t each) {
      split.set(each);
      // After its second micro-batch a window needs no more memory.
      std::int64_t const some = std::min(samples, 2 * each);
      return attempt(batch_narrow(*batch, 0, some));
    };
    undone(before, static_cast<RunState&>(run_), [&] {
      found =
          prober.find(Phase(run_), samples, held, step, [&] { before.restore(run_, Part::slots); });
      undo();
    });
    split.trying(false);
    split.set(found);
  }

  /// A trial step, which is not counted and which observers do not see. False if it was no step.
  bool attempt(Batch batch) {
    throw_if_preempted(run_);
    passes_.open();
    in_parts(
        batch,
        [this](Batch& part, MicroBatchIndex where) {
          passes_.template train<HookScope::slots>(part, where);
        },
        [] {});
    passes_.keep(std::move(batch));
    passes_.template update<HookScope::slots>();
    return passes_.release();
  }

  /// Runs a batch in micro-batches, and retries with smaller ones while memory runs out. Before
  /// each retry, undoes what the passes have changed and calls `on_undone()`.
  template <class Pass, class Undone>
  void in_parts(Batch const& batch, Pass&& pass, Undone&& on_undone) {
    auto& split = run_.engine->template state<kinds::accumulate>();
    std::int64_t const samples = batch_samples(batch);
    start_.take(run_, Part::passes);
    for (bool done = false; !done;) {
      auto const parts = split.parts(samples);
      if (parts.count > 1) split.split(Phase(run_));
      passes_.reopen(parts.count);
      try {
        [[maybe_unused]] auto const limit = memory_limit();
        for (std::int64_t i = 0; i < parts.count; ++i) {
          Batch part =
              parts.count == 1 ? batch : batch_narrow(batch, parts.begin(i), parts.size(i));
          pass(part, MicroBatchIndex{.first = i == 0, .last = i + 1 == parts.count});
        }
        done = true;
      } catch (...) {
        split.shrink(Phase(run_), samples);
      }
      // After the handler: the error may keep tensors alive.
      if (!done) {
        start_.restore(run_);
        on_undone();
      }
    }
  }

  auto memory_limit() {
    if constexpr (probes) {
      return run_.engine->template state<kinds::auto_batch>().limit();
    } else {
      return 0;
    }
  }

  void undo() {
    WindowRetry phase(run_);
    run_.engine->template emit<on::undo>(phase);
  }

  Run<Context>& run_;
  Passes& passes_;
  RunSnapshot start_;
};

}  // namespace frugal::detail
