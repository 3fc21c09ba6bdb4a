// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a callback returns a value that the loop does not use. Return nothing, or flow::stop to end the run and flow::proceed otherwise.
#include <frugal/core.hpp>
#include <frugal/policy/callback.hpp>
#include <frugal/policy/optimize.hpp>

#include <vector>

using namespace frugal;

template <class F>
void train(F const& call) {
  std::vector<Batch> batches;
  Trainer trainer{torch::nn::Linear(2, 1), MeanSquaredError{}, Optimize<SGD>{}, on_step(call)};
  static_cast<void>(trainer.fit(batches));
}

void good() {
  train([](Step&) {});
}
#ifdef FRUGAL_REJECT
void bad() {
  train([](Step&) { return 1; });
}
#endif
