// SPDX-License-Identifier: Apache-2.0
// A plain recipe in one process, for step_path.py: `step_path STEPS`.
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <cstdlib>

#include <frugal/core.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/optimize.hpp>

namespace fr = frugal;

struct Mean {
  at::Tensor operator()(torch::nn::Linear& module, fr::Batch const& batch) const {
    return module->forward(batch.data).square().mean();
  }
};

int main(int, char** argv) {
  auto const steps = static_cast<std::uint64_t>(std::atoi(argv[1]));
  fr::TensorDataset train(fr::Batch{at::randn({400, 4}), at::zeros({400})}, {.batch = 4});
  fr::Trainer trainer{torch::nn::Linear(4, 1), Mean{}, fr::Settings{.steps = steps},
                      fr::Optimize<fr::AdamW>{}};
  static_cast<void>(trainer.fit(train));
}
