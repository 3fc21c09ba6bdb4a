// SPDX-License-Identifier: Apache-2.0
// needs: torch step
// expect: frugal: a StepPackage runs the layers of its module as compiled code, and a policy of this recipe works in layers.
#include <frugal/core.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/recompute.hpp>
#include <frugal/policy/stop_after.hpp>
#include <frugal/step.hpp>

#include <vector>

using namespace frugal;

template <class... Ps>
void train() {
  StepPackage package("package");
  std::vector<Batch> batches;
  Trainer trainer{package.module(), package.objective(), Optimize<SGD>{}, Ps{}...};
  static_cast<void>(trainer.fit(batches));
}
template void train<StopAfter<Hours<1>>>();
#ifdef FRUGAL_REJECT
template void train<Recompute<Segments<2>>>();
#endif
