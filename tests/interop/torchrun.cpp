// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// Trains with Replicate<Exact> as whoever starts it says, and writes FOLDER/rank-N: what it found, how the processes
// answered, and the hash of the weights: interop_torchrun FOLDER [75|wait]. With 75 it then exits with that code, with
// `wait` it stays.
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

namespace fr = frugal;

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "interop_torchrun FOLDER [75|wait]\n";
    return 2;
  }
  try {
    fr::World const world = fr::World::from_environment();
    fr::Replicate<fr::Exact> const replicate;
    torch::manual_seed(1);
    torch::nn::Sequential net(torch::nn::Linear(8, 32), torch::nn::ReLU(), torch::nn::Dropout(0.1),
                              torch::nn::Linear(32, 3));
    fr::TensorDataset train(torch::randn({200, 8}), torch::randint(0, 3, {200}), {.batch = 4});
    fr::Trainer trainer{net,
                        fr::CrossEntropy{},
                        fr::Settings{.epochs = 3},
                        fr::Optimize<fr::AdamW>{.lr = 1e-2},
                        fr::Accumulate<8>{},
                        replicate};
    if (int const code = trainer.fit(train).exit_code(); code != 0) return code;
    std::ofstream out(std::filesystem::path(arguments[1]) / ("rank-" + std::to_string(world.rank)));
    out << world.text() << '\n' << world.local_rank << '\n';
    out << fr::module_identity(*net) << '\n';
    out.close();
    std::string const then = count > 2 ? arguments[2] : "";
    if (then == "wait") std::this_thread::sleep_for(std::chrono::minutes(5));
    return then == "75" ? 75 : 0;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
