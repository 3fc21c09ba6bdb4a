// SPDX-License-Identifier: Apache-2.0
// A real program: a trainer with ten policies, its data and its report.
#include <torch/torch.h>

#include <frugal/frugal.hpp>

#include <cstdlib>
#include <iostream>
#include <string>

namespace fr = frugal;
namespace nn = torch::nn;

using Recipe = fr::Recipe<
    fr::Optimize<fr::AdamW>, fr::Precision<fr::BF16>, fr::Accumulate<4>, fr::ClipNorm<>,
    fr::Schedule<fr::Warmup<100>, fr::Cosine>, fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>,
    fr::EarlyStop<fr::Patience<3>, fr::WatchAccuracy>, fr::Checkpoint<fr::Every<500>, fr::Async>,
    fr::Spot<fr::SigtermSave>, fr::Log<fr::Every<50>>>;

int main(int argc, char** argv) {
  std::string const folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  auto const [rows, held_out] =
      fr::split(fr::read_mnist(folder, fr::Split::train), {0.9, 0.1}, {.seed = 1});
  fr::TensorDataset train(rows, {.batch = 128});
  fr::TensorDataset valid(held_out, {.batch = 500, .shuffle = false});
  torch::manual_seed(1);
  nn::Sequential net(nn::Flatten(), nn::Linear(784, 128), nn::ReLU(), nn::Linear(128, 10));

  fr::Trainer<nn::Sequential, fr::CrossEntropy, Recipe> trainer{
      net,
      {.run_dir = "runs/package", .epochs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 2}};
  trainer.policy<fr::kinds::optimizer>().lr = 2e-3;
  fr::explain(trainer);
  std::cout << trainer.fit(train, valid) << '\n';
}
