// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a policy of this recipe watches a metric of a validation source that fit does not get. Give the source its name, as in fit(train, valid, named<"shifted">(other)) for "shifted/accuracy", or watch a metric of the first source.
#include <frugal/frugal.hpp>

#include <vector>

using namespace frugal;

template <fixed_string Name>
using Stops = EarlyStop<Watch<Name, Better::lower>>;

Report good(TensorDataset& train, TensorDataset& other) {
  Trainer trainer{torch::nn::Linear(8, 3), CrossEntropy{}, Optimize<AdamW>{},
                  Stops<"shifted/loss">{}};
  return trainer.fit(train, train, named<"shifted">(other));
}
#ifdef FRUGAL_REJECT
Report bad(TensorDataset& train, TensorDataset& other) {
  Trainer trainer{torch::nn::Linear(8, 3), CrossEntropy{}, Optimize<AdamW>{},
                  Stops<"shfted/loss">{}};
  return trainer.fit(train, train, named<"shifted">(other));
}
#endif
