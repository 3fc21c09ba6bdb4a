// SPDX-License-Identifier: Apache-2.0
// The smallest program: a module, an objective, a recipe, data.
#include <frugal/frugal.hpp>

#include <iostream>

namespace fr = frugal;

int main() {
  // Two moons of points that no straight line parts; the label says which moon.
  torch::manual_seed(0);
  at::Tensor const label = torch::randint(0, 2, {4096});
  at::Tensor const angle = torch::rand({4096}) * 3.14159 + label * 3.14159;
  at::Tensor const points = torch::stack({angle.cos() + label, angle.sin() + label * 0.5}, 1) +
                            torch::randn({4096, 2}) * 0.1;

  torch::nn::Sequential net(torch::nn::Linear(2, 32), torch::nn::ReLU(), torch::nn::Linear(32, 2));

  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 10},
                      fr::Optimize<fr::AdamW>{.lr = 1e-2},
                      fr::Schedule<fr::Warmup<10>, fr::Cosine>{},
                      fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{}};

  fr::TensorDataset train(points.slice(0, 0, 3072), label.slice(0, 0, 3072), {.batch = 64});
  fr::TensorDataset valid(points.slice(0, 3072), label.slice(0, 3072),
                          {.batch = 256, .shuffle = false});

  fr::Report const report = trainer.fit(train, valid);
  std::cout << report << '\n';
  return report.last()["accuracy"] > 0.9 ? 0 : 1;
}
