// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// Trains with Replicate<Ring> what ddp.py trains with PyTorch's DistributedDataParallel: from the weights and rows of
// FOLDER/start.safetensors; rank 0 writes the weights to FOLDER/frugal.safetensors: interop_ddp FOLDER
#include <torch/torch.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <string>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>

namespace fr = frugal;
using namespace fr::literals;

/// Weights, and the rows that it is trained on as buffers: one file has both.
struct NetImpl : torch::nn::Module {
  torch::nn::Linear first{register_module("first", torch::nn::Linear(16, 64))};
  torch::nn::LayerNorm norm{
      register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({64})))};
  torch::nn::Linear second{register_module("second", torch::nn::Linear(64, 5))};
  at::Tensor rows = register_buffer("rows", at::zeros({160, 16}));
  at::Tensor labels = register_buffer("labels", at::zeros({160}, at::kLong));
  at::Tensor forward(at::Tensor const& x) { return second(norm(first(x)).relu()); }
};
TORCH_MODULE(Net);

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "interop_ddp FOLDER\n";
    return 2;
  }
  try {
    std::filesystem::path const folder = arguments[1];
    Net net;
    fr::load_weights(net, folder / "start.safetensors");
    fr::TensorDataset train(net->rows.clone(), net->labels.clone(), {.batch = 4, .shuffle = false});
    fr::Trainer trainer{net,
                        fr::CrossEntropy{},
                        fr::Settings{.epochs = 4},
                        fr::Optimize<fr::SGD>{.lr = 0.1, .momentum = 0.9},
                        fr::Accumulate<4>{},
                        fr::ClipNorm<1.0_r>{},
                        fr::Replicate<fr::Ring>{.bucket_bytes = 1024}};
    if (int const code = trainer.fit(train).exit_code(); code != 0) return code;
    if (fr::World::from_environment().rank == 0) {
      fr::save_weights(net, folder / "frugal");
    }
    return 0;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
