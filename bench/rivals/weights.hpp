// SPDX-License-Identifier: Apache-2.0
// Recipes "ema", "swa" and "audit", for weights, with their hand-written loops.
#pragma once

#include "job.hpp"

namespace frugal_bench {

/// Recipe "ema": an exponential moving average of the weights.
using EmaTrainer =
    fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>, fr::Average<fr::Ema<0.999>>>;
/// Recipe "swa": from some step on, their mean at every tenth step.
using SwaTrainer = fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>,
                               fr::Average<fr::Swa<fr::From<10>, fr::Every<10>>>>;
/// Recipe "audit": deterministic kernels, and a hash of the weights at the end of each epoch.
using AuditTrainer =
    fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>, fr::Audit<fr::BitExact>>;

/// Takes the weights themselves first, and then the fraction `weight(taken)` of them.
template <class Due, class Weight>
void rival_average(Net& net, fr::TensorDataset& source, std::uint64_t steps, Due due,
                   Weight weight) {
  std::vector<at::Tensor> const parameters = net->parameters();
  std::vector<at::Tensor> averages;
  std::uint64_t taken = 0;
  auto const after = [&](std::uint64_t step) {
    if (!due(step)) return;
    torch::NoGradGuard const no_gradients;
    if (taken == 0) {
      for (at::Tensor const& parameter : parameters) averages.push_back(parameter.clone());
    } else {
      at::_foreach_lerp_(averages, parameters, weight(taken));
    }
    ++taken;
  };
  rival_loop(net, source, steps, plain_pass(net), plain_update, after);
}

inline void rival_ema(Net& net, fr::TensorDataset& source, std::uint64_t steps) {
  rival_average(
      net, source, steps, [](std::uint64_t) { return true; },
      [](std::uint64_t) { return 1 - 0.999; });
}

inline void rival_swa(Net& net, fr::TensorDataset& source, std::uint64_t steps) {
  rival_average(
      net, source, steps, [](std::uint64_t step) { return step >= 10 && step % 10 == 0; },
      [](std::uint64_t taken) { return 1.0 / (static_cast<double>(taken) + 1.0); });
}

/// Hashes only the first and the last weights: no measured run ends an epoch.
inline void rival_audit(Net& net, fr::TensorDataset& source, std::uint64_t steps) {
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicMkldnn(true);
  std::vector<std::uint64_t> hashes{fr::hash_of_tensors(*net)};
  rival_loop(net, source, steps, plain_pass(net), plain_update, nothing_after);
  hashes.push_back(fr::hash_of_tensors(*net));
  at::globalContext().setDeterministicMkldnn(false);
  at::globalContext().setDeterministicAlgorithms(false, false);
}

}  // namespace frugal_bench
