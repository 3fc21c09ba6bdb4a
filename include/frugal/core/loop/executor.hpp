// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <utility>

#include <frugal/core/compose/services.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/source/source.hpp>

namespace frugal {

// An executor decides how a window is executed. A policy that provides service::execution has a
// `template <class Passes> class Executor`, constructed from the run's passes, with these members:
//
//    explicit Executor(Passes&)
//    void set_up(Source&, Cursor start)  set-up before the first window that needs batches of the
//                                        source; leaves the source at `start`
//    StepOutcome train(Source&)          one window: read, forward and backward passes, update
//    at::Tensor reevaluate()             recomputes the loss and gradients of the last window
//
// EagerExecutor is the shortest one; docs/writing_a_policy.md lists what the passes offer.

/// The outcome of a window.
enum class StepOutcome {
  nothing,  ///< the epoch has no batch left
  skipped,  ///< its gradients overflowed: not a step
  completed,
};

/// Who sees a pass. A trial pass is seen by the slots alone: they transform it, and it is not
/// counted.
enum class HookScope { all, slots };

/// A micro-batch's position in its window.
struct MicroBatchIndex {
  bool first;
  bool last;
};

namespace detail {

/// Executes a window directly: each micro-batch as soon as it is read, kernel by kernel. The
/// default executor; a policy that provides another one implements the same members.
template <class Passes>
class EagerExecutor {
  using Batch = typename Passes::Batch;

 public:
  explicit EagerExecutor(Passes& passes) : passes_(passes) {}

  /// Set-up before the first window that needs batches of the source; leaves the source at `start`.
  template <class Source>
  void set_up(Source&, Cursor) {}

  // [begin train]
  template <class Source>
  StepOutcome train(Source& source) {
    passes_.open();
    if constexpr (Passes::places_matter) {
      train_looking_ahead(source);
    } else {
      for (int k = 0; k < passes_.batches(); ++k) {
        auto batch = source.next();
        if (!batch) break;
        train_one(*batch, {});
      }
    }
    return passes_.empty() ? StepOutcome::nothing : passes_.finish();
  }
  // [end train]

  /// Recomputes the loss and the gradients of the last window.
  at::Tensor reevaluate() {
    return passes_.reevaluate([this](auto const& all, auto const& pass) {
      passes_.reopen();
      for (Batch const& batch : all) pass(batch);
    });
  }

 private:
  // An epoch may end within a window: only the next read tells whether a micro-batch is the last.
  template <class Source>
  void train_looking_ahead(Source& source) {
    auto batch = source.next();
    for (int k = 0; batch; ++k) {
      auto following = k + 1 < passes_.batches() ? source.next() : decltype(batch){};
      train_one(*batch, {.first = k == 0, .last = !following});
      batch = std::move(following);
    }
  }

  void train_one(Batch& batch, MicroBatchIndex where) {
    passes_.template train<HookScope::all>(batch, where);
    passes_.keep(std::move(batch));
  }

  Passes& passes_;
};

/// The executor of a recipe.
template <class Passes, class Policy>
struct executor_of_policy {
  using type = typename Policy::template Executor<Passes>;
};
template <class Passes>
struct executor_of_policy<Passes, void> {
  using type = EagerExecutor<Passes>;
};
template <class Passes>
using executor_of = typename executor_of_policy<
    Passes,
    typename provider_of<service::execution, void, typename Passes::Context::policies>::type>::type;

}  // namespace detail
}  // namespace frugal
