// SPDX-License-Identifier: Apache-2.0
// The run for tests/interop/checkpoint.py: FOLDER gets a checkpoint of each of ten steps, with
// averages.
#include <frugal/frugal.hpp>

#include <exception>
#include <iostream>

namespace fr = frugal;

int main(int count, char** arguments) {
  try {
    if (count != 2) {
      std::cerr << "FOLDER\n";
      return 2;
    }
    torch::manual_seed(3);
    torch::nn::Sequential const net(torch::nn::Linear(8, 16), torch::nn::BatchNorm1d(16),
                                    torch::nn::ReLU(), torch::nn::Linear(16, 3));
    fr::Trainer trainer{net,
                        fr::CrossEntropy{},
                        fr::Settings{.run_dir = arguments[1], .epochs = 2},
                        fr::Optimize<fr::SGD>{.lr = 0.5},
                        fr::Average<fr::Ema<0.75>>{},
                        fr::Checkpoint<fr::Every<1>, fr::Keep<20>>{}};
    fr::TensorDataset train(at::randn({40, 8}), at::randint(0, 3, {40}), {.batch = 8});
    return trainer.fit(train).exit_code();
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
