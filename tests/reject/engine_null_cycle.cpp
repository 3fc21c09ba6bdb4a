// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: the order of these policies is a cycle: each must come after another one. Remove one `before` or `after`.
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

// The recipe alone has no cycle: only Validate, which fills the open slot, closes it.
template <class Before>
struct Between {
  using kind = kinds::progress;
  using listens = list<on::step>;
  using after = list<kinds::validate>;
  using before = Before;
  struct State {
    explicit State(Between const&) {}
    void on_step(Step&) {}
  };
};
template <class... Ps>
using policies_of =
    typename Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...>::policies;
static_assert(policies_of<Between<list<>>>::size > 1);
#ifdef FRUGAL_REJECT
static_assert(policies_of<Between<list<kinds::schedule>>>::size > 1);
#endif
