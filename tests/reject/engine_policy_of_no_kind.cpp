// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this trainer's recipe has no policy of the kind that is asked for. The compiler's note names it: add such a policy, or remove the call.
#include <frugal/policy/optimize.hpp>
#include <frugal/report/log.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
void look() {
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(trainer.template policy<kinds::log>());
}
template void look<Log<>>();
#ifdef FRUGAL_REJECT
template void look<>();
#endif
