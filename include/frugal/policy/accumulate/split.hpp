// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/out_of_memory.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/accumulate/executor.hpp>
#include <frugal/policy/kinds.hpp>

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
