// SPDX-License-Identifier: Apache-2.0
// A recipe as a production trainer has it, as a type: what it does is in one place, and what it
// must not combine does not compile.
#include <frugal/frugal.hpp>

#include <cstdlib>
#include <iostream>

namespace fr = frugal;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("hidden", hidden);
    register_module("norm", norm);
    register_module("head", head);
  }
  at::Tensor forward(at::Tensor x) {
    return head(torch::dropout(torch::relu(norm(hidden(x.flatten(1)))), 0.1, is_training()));
  }
  torch::nn::Linear hidden{784, 128};
  torch::nn::LayerNorm norm{torch::nn::LayerNormOptions({128})};
  torch::nn::Linear head{128, 10};
};
TORCH_MODULE(Net);

// Checkpoint<Every<500>> and Spot<SigtermSave> join this list when they exist.
using Production =
    fr::Trainer<Net, fr::CrossEntropy,                                              //
                fr::Optimize<fr::AdamW>, fr::Schedule<fr::Warmup<50>, fr::Cosine>,  //
                fr::Precision<fr::BF16>, fr::Accumulate<8>, fr::ClipNorm<>,         //
                fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>,                //
                fr::EarlyStop<fr::Patience<3>, fr::WatchAccuracy>,                  //
                fr::Smoke<>, fr::Log<fr::Every<50>>, fr::Progress<fr::WatchAccuracy>>;

static_assert(Production::host_syncs_per_step == 0);

int main(int argc, char** argv) {
  std::string const folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  try {
    fr::Resident train(fr::read_mnist(folder, fr::Split::train), {.batch = 32});
    fr::Resident valid(fr::read_mnist(folder, fr::Split::test), {.batch = 1000, .shuffle = false});

    torch::manual_seed(1);
    Production trainer{Net{}, {.run = "runs/production", .epochs = 6}};
    trainer.policy<fr::kinds::optimizer>().lr = 2e-3;
    trainer.policy<fr::kinds::optimizer>().groups = {fr::no_decay_for_biases_and_norms()};

    fr::explain(trainer);
    std::cout << trainer.fit(train, valid) << '\n';
  } catch (fr::Error const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
