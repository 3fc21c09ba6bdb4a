// SPDX-License-Identifier: Apache-2.0
// The recipe of a production trainer, as a type in one place; illegal combinations do not compile.
// It may be killed at any time, and resumes when the same command starts it again: docs/spot.md
// shows job schedulers that do.
#include <frugal/frugal.hpp>

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
  torch::nn::Linear hidden{784, 128};
  torch::nn::LayerNorm norm{torch::nn::LayerNormOptions({128})};
  torch::nn::Linear head{128, 10};
};
TORCH_MODULE(Net);

int main(int argc, char** argv) {
  std::uint64_t epochs = 6;
  std::string folder = "/usr/share/datasets/fashion-mnist";
  std::string run = "runs/production";

  CLI::App app("Trains on Fashion-MNIST, and resumes where it was stopped.");
  app.add_option("--run", run, "run directory: checkpoints and metrics.jsonl")
      ->capture_default_str();
  app.add_option("--epochs", epochs, "passes over the 54,000 training images")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--data", folder, "folder of the four idx files")->capture_default_str();
  bool json = false;
  app.add_flag("--json", json, "print the result as one line of JSON, and nothing else");
  CLI11_PARSE(app, argc, argv);
  // For a network this small a second thread costs more than it brings.
  at::set_num_threads(1);

  try {
    auto const [rows, held_out] =
        fr::split(fr::read_mnist(folder, fr::Split::train), {0.9, 0.1}, {.seed = 1});
    fr::TensorDataset train(rows, {.batch = 32});
    fr::TensorDataset valid(held_out, {.batch = 1000, .shuffle = false});

    torch::manual_seed(1);
    fr::Trainer trainer{
        Net{}, fr::CrossEntropy{}, fr::Settings{.run_dir = run, .epochs = epochs},
        fr::Optimize<fr::AdamW>{.lr = 2e-3, .groups = {fr::no_decay_for_biases_and_norms()}},
        fr::Schedule<fr::Warmup<50>, fr::Cosine>{}, fr::Precision<fr::BF16>{}, fr::Accumulate<8>{},
        fr::ClipNorm<>{}, fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
        fr::EarlyStop<fr::Patience<3>, fr::WatchAccuracy>{},
        fr::Checkpoint<fr::Every<500>, fr::Keep<3>, fr::Async>{},
        // On a cloud's spot machine add what it gives notice by:
        // Spot<SigtermSave, Grace<120>, Notices<Aws>>, of policy/notices.hpp.
        fr::Spot<fr::SigtermSave>{}, fr::DryRun<>{}, fr::Log<fr::Every<50>>{},
        fr::Progress<fr::WatchAccuracy>{}};
    static_assert(decltype(trainer)::host_syncs_per_step == 0);

    if (!json) fr::explain(trainer);
    std::cout << std::flush;

    // When the machine is taken, or somebody presses Ctrl-C, fit saves and returns. The code tells
    // whoever started this program: 75 asks to be run again, 130 is the Ctrl-C.
    fr::Report const report = trainer.fit(train, valid);
    if (json) {
      std::cout << fr::json_line(report) << '\n';
    } else {
      std::cout << report << '\n';
    }
    return report.exit_code();
  } catch (fr::Error const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
