// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/host_meter.hpp>
#include <frugal/core/libtorch/out_of_memory.hpp>
#include <frugal/core/loop/interruption.hpp>
#include <frugal/core/loop/passes.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/run/run_snapshot.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/labels.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/kinds.hpp>

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

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
      bool is_step = true;
      run_.hold.in_each_turn([&] { is_step = attempt(batch_narrow(*batch, 0, some)) && is_step; });
      return is_step;
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

namespace frugal {

namespace detail {

/// Splits a batch into as few parts as the limit allows, of sizes that differ by at most one. Parts
/// of equal size need no correction of the gradients, and single samples, which BatchNorm refuses,
/// are avoided where possible.
struct Parts {
  std::int64_t samples;  ///< of the batch
  std::int64_t count;

  Parts(std::int64_t batch, std::int64_t most)
      : samples(batch), count(most <= 0 || batch <= most ? 1 : (batch + most - 1) / most) {}

  std::int64_t largest() const { return (samples + count - 1) / count; }
  std::int64_t begin(std::int64_t part) const;
  std::int64_t size(std::int64_t part) const { return begin(part + 1) - begin(part); }
};

/// Whether a module has a BatchNorm layer that computes batch statistics. A frozen one does not.
bool trains_batch_norm(torch::nn::Module& module);

}  // namespace detail

/// One batch of the source makes one optimizer step, in as many micro-batches as memory requires.
///
/// Lever   memory: an effective batch larger than memory holds, without searching by hand
///         for the micro-batch size.
/// Cost    per step the generators' states and, for a module with buffers, a grouped copy of them;
///         a window that ran out of memory is retried.
/// State   the largest micro-batch; a resumed run splits like the original one.
/// Errors  MemoryError if one sample does not fit. A batch type that cannot be split does not
///         compile.
///
/// If the forward or backward pass of a window runs out of memory, the window is rolled back
/// (gradients, generators, buffers, counters, losses) and retried with micro-batches of half the
/// size, which all later windows use too. From there the run is bit for bit the same as one that
/// was given that size.
template <>
struct Accumulate<Auto> {
  FRUGAL_DIAGNOSTIC(
      and_audit,
      "frugal: Accumulate<Auto> splits a step as memory allows, so two runs under Audit<BitExact> "
      "may add up in different orders. Write Accumulate<N>, or remove Audit.");

  using kind = kinds::accumulate;
  using listens = list<on::fit_begin>;
  using provides = list<service::execution>;
  using conflicts = list<conflict<kinds::audit, and_audit>>;

  static constexpr About about{Term::memory,
                               "per step a copy of the module's buffers and of the generators"};

  static constexpr int micro_batches = 0;  ///< as many as the executor makes of a batch

  template <class Passes>
  using Executor = detail::SplitExecutor<Passes>;

  /// Largest micro-batch in samples; 0: the whole batch, or the size that AutoBatch finds.
  std::int64_t samples = 0;
  Outcome<std::int64_t> outcome{};  ///< set by fit: the final value of `samples`

  /// Largest micro-batch, in samples, at the end of the last fit; 0: batches were not split.
  std::int64_t micro_batch() const { return outcome.get() == nullptr ? samples : *outcome.get(); }
  /// One line for explain(); empty before a fit.
  std::string finding() const {
    if (outcome.get() == nullptr) return {};
    if (*outcome.get() == 0) return "batches are not split";
    return "a micro-batch has at most " + std::to_string(*outcome.get()) + " samples";
  }

  class State;
};

class Accumulate<Auto>::State {
 public:
  explicit State(Accumulate const& settings)
      : samples_(settings.samples), known_(settings.samples != 0), outcome_(&settings.outcome) {}

  void on_fit_begin(FitBegin&) {
    if (samples_ < 0) {
      throw SettingsError(
          {.what = "a micro-batch has at most " + std::to_string(samples_) + " samples",
           .where = "Accumulate<Auto>::samples",
           .why = "a micro-batch has at least one sample",
           .fix = "Give 1 or more, or 0 for the whole batch."});
    }
    outcome_->set(samples_);
  }

  // Called by the loop.

  detail::Parts parts(std::int64_t batch) const { return {batch, samples_}; }
  /// Whether the size was given, found, or loaded from a checkpoint.
  bool known() const { return known_; }
  void set(std::int64_t most) {
    samples_ = most;
    known_ = true;
    outcome_->set(most);
  }
  /// During the search, running out of memory is a result, not a fault to recover from.
  void trying(bool now) { trying_ = now; }

  /// Called before a window that is split.
  void split(Phase const& phase) {
    if (trying_ || std::exchange(split_before_, true)) return;
    if (detail::trains_batch_norm(base_module(phase.module()))) {
      phase.warn(
          "Accumulate<Auto>: BatchNorm takes its statistics of each micro-batch and not of the "
          "whole batch, so this run differs from one with whole batches; GroupNorm and LayerNorm "
          "do not depend on the batch");
    }
  }

  /// Call it in a handler: halves the micro-batch limit if memory ran out, and rethrows any other
  /// error. MemoryError if the limit cannot be halved.
  void shrink(Phase const& phase, std::int64_t batch) {
    if (trying_ || !detail::is_out_of_memory(std::current_exception())) throw;
    std::int64_t const before = parts(batch).largest();
    if (before <= 1) refuse(phase);
    set(before / 2);
    struck_ = true;
    phase.record({"split",
                  {{"samples", static_cast<std::uint64_t>(samples_)},
                   {"before", static_cast<std::uint64_t>(before)}}});
    phase.warn("Accumulate<Auto>: memory ran out at step " + std::to_string(phase.counters().step) +
               " with " + std::to_string(before) +
               " samples; from there on a micro-batch has at most " + std::to_string(samples_));
  }

  template <class Archive>
  void persist(Archive& archive) {
    std::int64_t most = samples_;
    bool is_known = known_;
    archive("samples", most);
    archive("known", is_known);
    if (!Archive::loading) return;
    // Rollback restores the run, but not what this process has learned about its memory.
    if (struck_ && (most == 0 || most > samples_)) return;
    samples_ = most;
    known_ = is_known;
    outcome_->set(samples_);
  }

 private:
  [[noreturn]] static void refuse(Phase const& phase) {
    std::throw_with_nested(MemoryError(
        {.what = "memory does not hold a step with micro-batches of one sample",
         .where = "step " + std::to_string(phase.counters().step) + ", Accumulate<Auto>",
         .why = "forward or backward ran out of memory, and one sample cannot be split",
         .fix = "Use a smaller model or shorter samples, Precision<BF16>, Recompute<> or "
                "Activations<BF16>, or more memory (AutoBatch::limit on the CPU)."}));
  }

  std::int64_t samples_;
  bool known_;
  Outcome<std::int64_t> const* outcome_;
  bool trying_ = false;
  bool split_before_ = false;
  bool struck_ = false;  ///< in this process
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/accumulate/split.ipp>
#endif
