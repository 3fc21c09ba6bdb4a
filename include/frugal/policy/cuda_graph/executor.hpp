// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include <frugal/core/loop/passes.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/source/source.hpp>

namespace frugal::detail {

/// Executes a window of a recipe with CudaGraph. Reads all its batches first, because it is replayed as
/// a whole or not at all.
template <class Passes>
class CapturedExecutor {
  using Context = typename Passes::Context;
  using Batch = typename Passes::Batch;

 public:
  explicit CapturedExecutor(Passes& passes) : passes_(passes) {}

  template <class Source>
  void set_up(Source&, Cursor) {}

  template <class Source>
  StepOutcome train(Source& source) {
    std::vector<Batch> batches;
    for (int k = 0; k < Passes::batches; ++k) {
      auto batch = source.next();
      if (!batch) break;
      batches.push_back(std::move(*batch));
    }
    if (batches.empty()) return StepOutcome::nothing;

    auto& run = passes_.run();
    auto& graph = run.engine->template provider<service::capture>();
    auto const pass = [&](Batch const& batch, int times) { return passes_.capture(batch, times); };
    passes_.open();
    bool const replayed =
        graph.ready(run, batches, source, pass, [&] { passes_.template update<HookScope::all>(); });
    passes_.open();
    if (replayed) {
      graph.replay(batches, [&](Batch const& batch, at::Tensor const& loss, double weight,
                                Scalars const& scalars) {
        passes_.add_replayed(batch, loss, weight, scalars);
      });
      passes_.count();
      graph.update_host();
      return passes_.close();
    }
    StepOutcome trained = StepOutcome::nothing;
    graph.eagerly(run, [&] {
      for (std::size_t i = 0; i < batches.size(); ++i) {
        passes_.template train<HookScope::all>(batches[i],
                                               {.first = i == 0, .last = i + 1 == batches.size()});
      }
      trained = passes_.finish();
      return passes_.weight();
    });
    return trained;
  }

  /// Unused: an optimizer that reevaluates cannot be captured.
  static at::Tensor reevaluate() { return {}; }

 private:
  Passes& passes_;
};

}  // namespace frugal::detail
