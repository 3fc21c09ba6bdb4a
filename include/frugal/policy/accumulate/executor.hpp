// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <frugal/compose/composition.hpp>
#include <frugal/data/source.hpp>
#include <frugal/libtorch/host_meter.hpp>
#include <frugal/loop/passes.hpp>
#include <frugal/loop/preemption.hpp>
#include <frugal/policy/accumulate/trial.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/run/phases.hpp>
#include <frugal/run/run.hpp>
#include <frugal/state/snapshot.hpp>

namespace frugal::detail {

/// A window of Accumulate<Auto>: one batch of the source, in as many micro-batches as memory asks
/// for.
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
  Trained train(Train& source) {
    auto batch = source.next();
    if (!batch) return Trained::nothing;
    passes_.open();
    in_parts(
        *batch,
        [this](Batch& part, InWindow where) { passes_.template train<Audience::all>(part, where); },
        [this] { undo(); });
    passes_.keep(std::move(*batch));
    return passes_.finish();
  }

  at::Tensor reevaluate() {
    return passes_.reevaluate([this](auto const& batches, auto const& pass) {
      // clang 19 misses the use of this in a bare name
      this->in_parts(batches.front(), [&](Batch& part, InWindow) { pass(part); }, [] {});
    });
  }

  /// Steps that are made and undone tell how large a micro-batch may be. Leaves the source where
  /// `start` is.
  template <class Train>
  void settle(Train& source, Cursor start) {
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
    // The copies lie in host memory: what tries how much a device holds must not fill it.
    std::int64_t const live = HostMeter::live();
    Snapshot<AnyRun> before;
    before.take(run_, Part::tried);
    std::int64_t const held = HostMeter::live() - live;
    split.trying(true);
    auto const step = [&](std::int64_t each) {
      split.set(each);
      // Behind the second of its micro-batches a window needs no more memory.
      std::int64_t const some = std::min(samples, 2 * each);
      return attempt(batch_narrow(*batch, 0, some));
    };
    undone(before, static_cast<AnyRun&>(run_), [&] {
      found = prober.find(Phase<Context>(run_), samples, held, step,
                          [&] { before.restore(run_, Part::slots); });
      undo();
    });
    split.trying(false);
    split.set(found);
  }

  /// A step that is not counted and of which no observer hears. False if it was none.
  bool attempt(Batch batch) {
    throw_if_preempted(run_);
    passes_.open();
    in_parts(
        batch,
        [this](Batch& part, InWindow where) {
          passes_.template train<Audience::slots>(part, where);
        },
        [] {});
    passes_.keep(std::move(batch));
    passes_.template update<Audience::slots>();
    return passes_.release();
  }

  /// Passes over a batch in micro-batches, anew and in smaller ones for as long as memory does not
  /// suffice. What the passes have touched is put back before that, and then `told()` is called.
  template <class Pass, class Undone>
  void in_parts(Batch const& batch, Pass&& pass, Undone&& told) {
    auto& split = run_.engine->template state<kinds::accumulate>();
    std::int64_t const samples = batch_samples(batch);
    start_.take(run_, Part::passes);
    for (bool done = false; !done;) {
      auto const parts = split.parts(samples);
      if (parts.count > 1) split.split(Phase<Context>(run_));
      passes_.reopen(parts.count);
      try {
        [[maybe_unused]] auto const limit = memory_limit();
        for (std::int64_t i = 0; i < parts.count; ++i) {
          Batch part =
              parts.count == 1 ? batch : batch_narrow(batch, parts.begin(i), parts.size(i));
          pass(part, InWindow{.first = i == 0, .last = i + 1 == parts.count});
        }
        done = true;
      } catch (...) {
        split.shrink(Phase<Context>(run_), samples);
      }
      // Behind the handler: the error may hold on to tensors.
      if (!done) {
        start_.restore(run_);
        told();
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
    Undo<Context> phase(run_);
    run_.engine->template emit<on::undo>(phase);
  }

  Run<Context>& run_;
  Passes& passes_;
  Snapshot<AnyRun> start_;
};

}  // namespace frugal::detail
