// SPDX-License-Identifier: Apache-2.0
// Trains a convolutional network on 54,000 images of Fashion-MNIST, keeps the checkpoint that is
// best on another 6,000, and evaluates that one on the 10,000 test images, which chose nothing.
//
// Shapes: B images, 1x28x28 each; 10 classes.
#include <frugal/frugal.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>

namespace fr = frugal;
namespace nn = torch::nn;

// 421,642 parameters.
struct ConvNetImpl : nn::Module {
  ConvNetImpl() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("hidden", hidden);
    register_module("head", head);
    register_module("dropout", dropout);
  }

  at::Tensor forward(at::Tensor images_B1HW) {
    at::Tensor x = torch::max_pool2d(torch::relu(conv1(images_B1HW)), 2);  // [B, 32, 14, 14]
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);                       // [B, 64, 7, 7]
    x = dropout(torch::relu(hidden(x.flatten(1))));                        // [B, 128]
    return head(x);                                                        // [B, 10]
  }

  nn::Conv2d conv1{nn::Conv2dOptions(1, 32, 3).padding(1)};
  nn::Conv2d conv2{nn::Conv2dOptions(32, 64, 3).padding(1)};
  nn::Linear hidden{64 * 7 * 7, 128};
  nn::Linear head{128, 10};
  nn::Dropout dropout{0.25};
};
TORCH_MODULE(ConvNet);

std::string number(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

void entry(std::filesystem::path const& name, std::string const& what) {
  std::cout << "  " << std::left << std::setw(28) << name.string() << ' ' << what << '\n';
}

// What is worth keeping of a run, in at most 80 columns.
void summarise(fr::Report const& report, double test_accuracy, std::filesystem::path const& run,
               std::string const& command) {
  auto const accuracy = [](fr::Validation const& validation) {
    return 100 * validation.metrics["accuracy"];
  };
  auto const best = std::ranges::max_element(report.validations, {}, accuracy);
  double const seconds = report.total_seconds();
  std::cout << "\nTest accuracy  " << number(100 * test_accuracy, 2)
            << "% of 10,000 images, with the best checkpoint\nValidation     "
            << number(accuracy(report.validations.back()), 2) << "% of 6,000; the best was "
            << number(accuracy(*best), 2) << "%, after epoch " << best->epoch << "\nTrained        "
            << report.epochs << (report.epochs == 1 ? " epoch, " : " epochs, ") << report.steps
            << " steps in " << number(seconds, 1) << " s, "
            << number(static_cast<double>(report.samples) / seconds, 0) << " images per second\n";
  if (report.resumed) {
    bool const finished = report.resumed->step == report.steps;
    std::cout << "Resumed        from step " << report.resumed->step
              << (finished ? ", where it had ended: nothing is left to train" : "") << '\n';
  }

  auto const newest = fr::latest_checkpoint(run);
  auto const judged = fr::best_checkpoint<fr::WatchAccuracy>(run);
  std::cout << "\nThe run directory is " << run.string() << ":\n";
  entry("metrics.jsonl", "losses, validations and events, as JSON lines");
  if (newest == judged) {
    entry(newest.lexically_relative(run), "newest checkpoint, and the best by accuracy");
  } else {
    entry(newest.lexically_relative(run), "newest checkpoint");
    entry(judged.lexically_relative(run), "best checkpoint by accuracy");
  }
  entry("  model.safetensors", "the weights, which Python reads as well");

  std::cout << "\nNext:\n";
  entry("train for longer", command + " --epochs 12");
  entry("stop and resume", "Ctrl-C in a run, then the same command again");
  entry("evaluate the best checkpoint", command + " --evaluate");
  entry("add a lever", "fr::Average<fr::Ema<>>{} to the trainer in");
  entry("", "examples/fashion_mnist.cpp, then");
  entry("", command + " --run runs/average");
  entry("begin again", command + " --run runs/again");
}

int main(int argc, char** argv) {
  std::uint64_t epochs = 6;
  std::int64_t batch = 128;
  double learning_rate = 2e-3;
  std::string folder = "/usr/share/datasets/fashion-mnist";
  std::string run = "runs/fashion_mnist";
  int threads = 0;
  double at_least = 0;
  bool evaluate = false;

  CLI::App app("Trains a convolutional network on Fashion-MNIST.");
  app.add_option("--epochs", epochs, "passes over the 54,000 training images")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--batch", batch, "images per step")
      ->check(CLI::Range(1, 54000))
      ->capture_default_str();
  app.add_option("--lr", learning_rate, "peak learning rate")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--data", folder, "folder of the four idx files")->capture_default_str();
  app.add_option("--run", run, "folder for checkpoints and metrics.jsonl")->capture_default_str();
  app.add_option("--threads", threads, "threads for LibTorch; 0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--at-least", at_least, "fail if the test accuracy is below this")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--evaluate", evaluate, "only evaluate the best checkpoint of --run");
  bool json = false;
  app.add_flag("--json", json, "print the result as one line of JSON, and nothing else");
  CLI11_PARSE(app, argc, argv);
  if (threads > 0) at::set_num_threads(threads);

  try {
    auto const [rows, held_out] =
        fr::split(fr::read_mnist(folder, fr::Split::train), {0.9, 0.1}, {.seed = 1});
    fr::TensorDataset train(rows, {.batch = batch});
    fr::TensorDataset valid(held_out, {.batch = 500, .shuffle = false});
    fr::TensorDataset test(fr::read_mnist(folder, fr::Split::test),
                           {.batch = 500, .shuffle = false});

    torch::manual_seed(1);
    fr::Trainer trainer{
        ConvNet{},
        fr::CrossEntropy{},
        fr::Settings{.run_dir = run, .epochs = epochs, .seed = 1},
        fr::Optimize<fr::AdamW>{.lr = learning_rate,
                                .groups = {fr::no_decay_for_biases_and_norms()}},
        fr::Schedule<fr::Warmup<100>, fr::Cosine>{},
        fr::ClipNorm<>{},
        fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
        fr::EarlyStop<fr::Patience<3>, fr::WatchAccuracy>{},
        fr::Checkpoint<fr::Every<1, fr::Epoch>, fr::Keep<1>, fr::KeepBest<fr::WatchAccuracy>>{},
        fr::DryRun<>{},
        fr::Log<fr::Every<50>>{},
        fr::KeepHostMemory{},
        fr::Progress<fr::WatchAccuracy>{}};

    auto const test_best = [&](std::filesystem::path const& best) {
      fr::load_weights(trainer.module(), best);
      return trainer.evaluate(test);
    };
    if (evaluate) {
      auto const best = fr::best_checkpoint<fr::WatchAccuracy>(run);
      fr::Metrics const found = test_best(best);
      std::cout << best.string() << ": test accuracy " << number(100 * found["accuracy"], 2)
                << "%, loss " << number(found["loss"], 4) << '\n';
      return found["accuracy"] >= at_least ? EXIT_SUCCESS : EXIT_FAILURE;
    }

    if (!json) {
      std::cout << "54,000 training, 6,000 validation and 10,000 test images of " << folder << "; "
                << epochs << (epochs == 1 ? " epoch" : " epochs") << " of batches of " << batch
                << ", learning rate " << learning_rate << ", " << at::get_num_threads()
                << " threads\n";
      fr::explain(trainer);
      std::cout << std::flush;
    }

    fr::Report const report = trainer.fit(train, valid);
    if (json) {
      std::cout << fr::json_line(report) << '\n';
      return report.exit_code();
    }
    for (std::string const& text : report.warnings) std::cout << "warning: " << text << '\n';
    if (report.exit_code() != EXIT_SUCCESS || report.validations.empty()) {
      std::cout << report << '\n';
      return report.exit_code();
    }
    double const accuracy = test_best(fr::best_checkpoint<fr::WatchAccuracy>(run))["accuracy"];
    summarise(report, accuracy, run, argv[0]);
    return accuracy >= at_least ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (fr::Error const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
