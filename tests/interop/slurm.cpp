// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// Trains in the processes that a launcher starts, into a folder that a later start goes on with, with Replicate<Exact>
// or Pipeline: interop_slurm FOLDER [MILLISECONDS [COPIES]], COPIES of the module that Pipeline divides. A micro-batch takes 25 ms, or as many as are given, so that
// signals come in the middle. The first process writes the hash of the weights to FOLDER/weights at the end. kills.py
// uses it, too.
#include <torch/torch.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>
#include <frugal/report.hpp>

namespace fr = frugal;
using namespace fr::literals;
using namespace std::chrono_literals;

namespace {

constexpr int layers = 5;  ///< with weights, which is as many processes as Pipeline takes

torch::nn::Sequential network() {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(8, 64));
  for (int i = 2; i < layers; ++i) {
    net->push_back(torch::nn::ReLU());
    net->push_back(torch::nn::Dropout(0.1));
    net->push_back(torch::nn::Linear(64, 64));
  }
  net->push_back(torch::nn::Tanh());
  net->push_back(torch::nn::Linear(64, 3));
  return net;
}

template <class Divided>
fr::Report train(torch::nn::Sequential& net, std::filesystem::path const& folder,
                 std::chrono::milliseconds pause, Divided const& divided) {
  fr::TensorDataset train(torch::randn({320, 8}), torch::randint(0, 3, {320}), {.batch = 4});
  auto const slowly = [pause](torch::nn::Sequential& module, fr::Batch const& batch) {
    std::this_thread::sleep_for(pause);
    return torch::nn::functional::cross_entropy(module->forward(batch.data), batch.target);
  };
  fr::Trainer trainer{net,
                      slowly,
                      fr::Settings{.run_dir = folder, .epochs = 4},
                      fr::Optimize<fr::AdamW>{.lr = 1e-2},
                      fr::Accumulate<8>{},
                      fr::ClipNorm<1.0_r>{},
                      fr::Checkpoint<fr::Every<5>>{},
                      fr::Spot<fr::SigtermSave>{},
                      fr::Log<fr::Every<1>>{},
                      fr::CostMeter{},
                      divided};
  return trainer.fit(train);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "interop_slurm FOLDER [MILLISECONDS [COPIES]]\n";
    return 2;
  }
  try {
    std::filesystem::path const folder = arguments[1];
    fr::World const world = fr::World::from_environment();
    torch::nn::Sequential net = network();
    std::chrono::milliseconds const pause(count > 2 ? std::stoi(arguments[2]) : 25);
    // A rank that is killed before it has come must not keep the others for minutes.
    auto const all = fr::Communicator::join(world, {.join = 15s});
    int const copies = count > 3 ? std::stoi(arguments[3]) : 0;
    using Replicate = fr::Replicate<fr::Exact, fr::Shard<fr::States>>;
    using Pipeline = fr::Pipeline<fr::OneForwardOneBackward, fr::Exact>;
    fr::Report report;
    if (copies == 0) {
      report = train(net, folder, pause, Replicate{.with = all});
    } else {
      fr::Grid const grid = fr::Grid::of(all, {.data = copies, .stages = world.size / copies});
      report = train(net, folder, pause, Pipeline{.with = grid.stages, .copies = grid.data});
    }
    std::cout << world.text() << ": " << report.steps << " steps, exit " << report.exit_code()
              << std::endl;
    if (report.exit_code() != 0) return report.exit_code();
    torch::nn::Sequential whole = net;
    if (copies != 0) {
      whole = network();
      fr::gather_stages(*net, *whole);
    }
    if (world.rank == 0) std::ofstream(folder / "weights") << fr::module_identity(*whole) << '\n';
    return 0;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
