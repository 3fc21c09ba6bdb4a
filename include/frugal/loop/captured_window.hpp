// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <frugal/loop/passes.hpp>
#include <frugal/loop/run.hpp>

namespace frugal::detail {

/// A window of a recipe with Graph. Its batches are read first: it is replayed as a whole or not.
template <class Context, class Objective, class Batch, class Train>
Trained train_captured_window(Run<Context>& run, Passes<Context, Objective, Batch>& passes,
                              Train& source) {
  std::vector<Batch> batches;
  for (int k = 0; k < FitTraits<typename Context::policies>::micro_batches; ++k) {
    auto batch = source.next();
    if (!batch) break;
    batches.push_back(std::move(*batch));
  }
  if (batches.empty()) return Trained::nothing;

  auto& graph = run.engine->template state<kinds::execution>();
  auto const pass = [&](Batch const& batch, int times) { return passes.capture(batch, times); };
  passes.open();
  bool const replayed =
      graph.ready(run, batches, source, pass, [&] { passes.template update<Audience::all>(); });
  passes.open();
  if (replayed) {
    graph.replay(batches, [&](Batch const& batch, at::Tensor const& loss, double weight) {
      passes.add_replayed(batch, loss, weight);
    });
    passes.count();
    graph.tell_host();
    return passes.close();
  }
  Trained trained = Trained::nothing;
  graph.eagerly(run, [&] {
    for (Batch& batch : batches) passes.template train<Audience::all>(batch);
    trained = passes.finish();
    return passes.weight();
  });
  return trained;
}

}  // namespace frugal::detail
