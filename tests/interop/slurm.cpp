// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// Trains in the processes that a launcher starts, into a folder that a later start goes on with, with Replicate<Exact>
// or Pipeline: interop_slurm FOLDER [MILLISECONDS [COPIES [WINDOW]]], COPIES of the module that Pipeline divides (0: Replicate),
// WINDOW micro-batches of a step (8; with Replicate also 10 or 12, for 5, 3 and 6 processes). A micro-batch takes 25 ms, or as many as
// are given, so that signals come in the middle. The first process writes the hash of the weights to FOLDER/weights at the
// end. kills.py uses it, too: interop_slurm --forks forks such processes, which have loaded LibTorch then.
#include <torch/torch.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>
#include <frugal/report.hpp>

namespace fr = frugal;
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

template <int window = 8, class Divided>
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
                      fr::Accumulate<window>{},
                      fr::ClipNorm<1.0>{},
                      fr::Checkpoint<fr::Every<5>>{},
                      fr::Spot<fr::SigtermSave>{},
                      fr::Log<fr::Every<1>>{},
                      fr::CostMeter{},
                      divided};
  return trainer.fit(train);
}

int train_as_told(int count, char** arguments);

/// A line of standard input, "SIZE PORT OUTPUTS ARGUMENT...", starts SIZE ranks; their process ids are the answer.
/// A line "PID STATUS" tells of the end of each.
int fork_ranks() {
  std::string unread;
  while (true) {
    pollfd input{.fd = 0, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, 20) > 0) {
      std::array<char, 4096> part{};
      ssize_t const got = ::read(0, part.data(), part.size());
      if (got <= 0) return 0;
      unread.append(part.data(), static_cast<std::size_t>(got));
    }
    for (std::size_t end = 0; (end = unread.find('\n')) != std::string::npos;) {
      std::istringstream line(unread.substr(0, end));
      unread.erase(0, end + 1);
      int size = 0;
      std::string port, outputs;
      line >> size >> port >> outputs;
      std::vector<std::string> arguments{"interop_slurm"};
      for (std::string each; line >> each;) arguments.push_back(each);
      std::string all;
      for (int rank = 0; rank < size; ++rank) {
        pid_t const child = ::fork();
        if (child == 0) {
          ::prctl(PR_SET_PDEATHSIG, SIGKILL);
          int const file = ::open((outputs + "/" + std::to_string(rank)).c_str(),
                                  O_WRONLY | O_CREAT | O_TRUNC, 0666);
          if (::dup2(file, 1) < 0 || ::dup2(file, 2) < 0) std::_Exit(3);
          ::setenv("RANK", std::to_string(rank).c_str(), 1);
          ::setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
          ::setenv("MASTER_PORT", port.c_str(), 1);
          std::vector<char*> pointers;
          for (std::string& each : arguments) pointers.push_back(each.data());
          std::exit(train_as_told(static_cast<int>(pointers.size()), pointers.data()));
        }
        all += (all.empty() ? "" : " ") + std::to_string(child);
      }
      std::cout << all << std::endl;
    }
    int status = 0;
    for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      int const code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      std::cout << ended << ' ' << code << std::endl;
    }
  }
}

int train_as_told(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "interop_slurm FOLDER [MILLISECONDS [COPIES [WINDOW]]]\n";
    return 2;
  }
  try {
    std::filesystem::path const folder = arguments[1];
    fr::World const world = fr::World::from_environment();
    torch::nn::Sequential net = network();
    std::chrono::milliseconds const pause(count > 2 ? std::stoi(arguments[2]) : 25);
    // A rank that is killed before it has said anything must not keep the others for minutes.
    auto const all = fr::Communicator::join(world, {.join = 40s});
    int const copies = count > 3 ? std::stoi(arguments[3]) : 0;
    using Replicate = fr::Replicate<fr::Exact, fr::Shard<fr::States>>;
    using Pipeline = fr::Pipeline<fr::OneForwardOneBackward, fr::Exact>;
    fr::Report report;
    int const window = count > 4 ? std::stoi(arguments[4]) : 8;
    if (copies == 0 && window == 10) {
      report = train<10>(net, folder, pause, Replicate{.with = all});
    } else if (copies == 0 && window == 12) {
      report = train<12>(net, folder, pause, Replicate{.with = all});
    } else if (copies == 0) {
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

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && std::string(arguments[1]) == "--forks") return fork_ranks();
  return train_as_told(count, arguments);
}
