// SPDX-License-Identifier: Apache-2.0
// The run for tests/interop/profile.py: FOLDER gets two windows of Profile, of five steps each.
#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

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
    fr::Trainer trainer{torch::nn::Sequential(torch::nn::Linear(8, 64), torch::nn::ReLU(),
                                              torch::nn::Linear(64, 3)),
                        fr::CrossEntropy{},
                        fr::Settings{.run_dir = arguments[1], .epochs = 2},
                        fr::Optimize<fr::AdamW>{},
                        fr::Accumulate<2>{},
                        fr::Profile<fr::Steps<5>, fr::PerEpoch>{.warm_up = 2, .least_busy = 0}};
    fr::TensorDataset train(at::randn({160, 8}), at::randint(0, 3, {160}), {.batch = 8});
    static_cast<void>(trainer.fit(train));
    return trainer.profile().windows().size() == 2 ? 0 : 1;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
