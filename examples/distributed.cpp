// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// One program for a laptop, for the GPUs of a machine, and for several machines that may be taken
// away: docs/cluster/tutorial.md starts it on each. The number of processes changes none of its bits.
#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

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
  torch::nn::Linear hidden{784, 512};
  torch::nn::LayerNorm norm{torch::nn::LayerNormOptions({512})};
  torch::nn::Linear head{512, 10};
};
TORCH_MODULE(Net);

int main(int argc, char** argv) {
  std::uint64_t epochs = 3;
  std::string folder = "/usr/share/datasets/fashion-mnist";
  std::string run = "runs/distributed";

  CLI::App app("Trains on Fashion-MNIST in as many processes as are started: 1, 2, 4 or 8.");
  app.add_option("--run", run, "run directory, which all machines see")->capture_default_str();
  app.add_option("--epochs", epochs, "passes over the 54,000 training images")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--data", folder, "folder of the four idx files")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);  // the same in all processes; a small network gains nothing from more

  try {
    // [begin run]
    // Who this process is, from what the launcher has set: one of one without a launcher.
    fr::World const world = fr::World::from_environment();
    auto const [rows, held_out] =
        fr::split(fr::read_mnist(folder, fr::Split::train), {0.9, 0.1}, {.seed = 1});
    fr::TensorDataset train(rows, {.batch = 32});
    fr::TensorDataset valid(held_out, {.batch = 1000, .shuffle = false});

    torch::manual_seed(1);  // every process makes the same weights
    Net net;
    fr::Settings settings{.run_dir = run, .epochs = epochs};
    if (torch::cuda::is_available()) {
      settings.device = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(world.local_rank));
    }
    fr::Trainer trainer{net,
                        fr::CrossEntropy{},
                        settings,
                        fr::Optimize<fr::AdamW>{.lr = 2e-3},
                        fr::Schedule<fr::Warmup<50>, fr::Cosine>{},
                        fr::Accumulate<8>{},  // micro-batches of a step, of all processes together
                        fr::ClipNorm<>{},
                        fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
                        fr::Replicate<fr::Exact, fr::Shard<fr::States>>{},
                        fr::Checkpoint<fr::Every<100>, fr::Keep<2>>{},
                        fr::Spot<fr::SigtermSave>{},
                        fr::CostMeter{},
                        fr::Log<fr::Every<50>>{},
                        fr::Progress<fr::WatchAccuracy>{}};

    fr::Report const report = trainer.fit(train, valid);
    // The same line in every process, whatever their number.
    std::cout << world.text() << ": " << report.steps << " steps, " << fr::module_identity(*net)
              << '\n';
    return report.exit_code();  // 75: stopped and saved; whoever started all shall do so again
    // [end run]
  } catch (fr::Error const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
