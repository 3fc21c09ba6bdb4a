// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// Trains with Replicate<Ring> what ddp.py trains with PyTorch's DistributedDataParallel: from the weights and rows of
// FOLDER/start.safetensors; rank 0 writes the weights to FOLDER/frugal: interop_ddp FOLDER ddp STEPS
// With `zero` in place of `ddp`: by AdamW, with Shard<States>, as PyTorch's ZeroRedundancyOptimizer. With `wire`: gradients
// travel in BF16, as by PyTorch's bf16_compress_hook. With `power1` and `power4`: matrices travel as factors of one and four
// columns from the third step on, as by PyTorch's powerSGD_hook.
#include <torch/torch.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <string>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>

namespace fr = frugal;

/// Weights, and the rows that it is trained on as buffers: one file has both.
struct NetImpl : torch::nn::Module {
  torch::nn::Linear first{register_module("first", torch::nn::Linear(16, 256))};
  torch::nn::LayerNorm norm{
      register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({256})))};
  torch::nn::Linear middle{register_module("middle", torch::nn::Linear(256, 64))};
  torch::nn::Linear second{register_module("second", torch::nn::Linear(64, 5))};
  at::Tensor rows = register_buffer("rows", at::zeros({160, 16}));
  at::Tensor labels = register_buffer("labels", at::zeros({160}, at::kLong));
  at::Tensor forward(at::Tensor const& x) { return second(middle(norm(first(x)).relu()).relu()); }
};
TORCH_MODULE(Net);

template <class Optimizer, class Replicate>
int train(char** arguments, Optimizer const& optimizer, Replicate const& replicate) {
  std::filesystem::path const folder = arguments[1];
  Net net;
  fr::load_weights(net, folder / "start.safetensors");
  fr::TensorDataset train(net->rows.clone(), net->labels.clone(), {.batch = 4, .shuffle = false});
  fr::Trainer trainer{
      net,       fr::CrossEntropy{},  fr::Settings{.epochs = 4, .steps = std::stoull(arguments[3])},
      optimizer, fr::Accumulate<4>{}, fr::ClipNorm<1.0>{},
      replicate};
  if (int const code = trainer.fit(train).exit_code(); code != 0) return code;
  if (fr::World::from_environment().rank == 0) fr::save_weights(net, folder / "frugal");
  return 0;
}

int main(int count, char** arguments) {
  std::string const way = count == 4 ? arguments[2] : "";
  if (way != "ddp" && way != "zero" && way != "wire" && way != "power1" && way != "power4") {
    std::cerr << "interop_ddp FOLDER ddp|zero|wire|power1|power4 STEPS\n";
    return 2;
  }
  try {
    if (way == "zero") {
      return train(arguments, fr::Optimize<fr::AdamW>{.lr = 1e-3},
                   fr::Replicate<fr::Ring, fr::Shard<fr::States>>{.bucket_bytes = 1024});
    }
    fr::Optimize<fr::SGD> const sgd{.lr = 0.1, .momentum = 0.9};
    fr::PowerSGDSettings const factors{.start_step = 2, .seed = 7};
    if (way == "power1") {
      return train(arguments, sgd,
                   fr::Replicate<fr::Ring, fr::Wire<fr::PowerSGD<1>>>{.wire = factors});
    }
    if (way == "power4") {
      return train(arguments, sgd,
                   fr::Replicate<fr::Ring, fr::Wire<fr::PowerSGD<4>>>{.wire = factors});
    }
    if (way == "wire") {
      return train(arguments, sgd,
                   fr::Replicate<fr::Ring, fr::Wire<fr::BF16>>{.bucket_bytes = 1024});
    }
    return train(arguments, sgd, fr::Replicate<fr::Ring>{.bucket_bytes = 1024});
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
