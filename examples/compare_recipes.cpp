// SPDX-License-Identifier: Apache-2.0
// needs: recipes
// Trains every legal combination of a few policies from the same weights, on the same batches of
// Fashion-MNIST, several times, and prints a table. docs/compare.md goes through this file.
//
// Shapes: B images, 1x28x28 each; 10 classes.
#include <frugal/compare.hpp>
#include <frugal/frugal.hpp>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

namespace fr = frugal;
namespace nn = torch::nn;

// [begin module]
// Called under the seed of each run: every recipe starts from the same weights.
nn::Sequential network() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 16, 5).stride(2)), nn::ReLU(),
                        nn::Conv2d(nn::Conv2dOptions(16, 32, 5).stride(2)), nn::ReLU(),
                        nn::Flatten(), nn::Linear(32 * 4 * 4, 10));
}
// [end module]

int main(int argc, char** argv) {
  std::uint64_t epochs = 3;
  std::uint64_t steps = 0;
  std::size_t repeats = 3;
  std::int64_t batch = 128;
  int threads = 1;
  double accuracy = 0.8;
  double price = 0;
  std::string folder = "/usr/share/datasets/fashion-mnist";
  std::string json, waterfall;

  CLI::App app("Compares recipes on Fashion-MNIST.");
  app.add_option("--epochs", epochs, "the most of each run")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--steps", steps, "optimizer steps of each run, whatever its accuracy")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--repeats", repeats, "runs of each recipe, each with its own seed")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--batch", batch, "images per step")
      ->check(CLI::Range(1, 54000))
      ->capture_default_str();
  app.add_option("--threads", threads, "threads for LibTorch")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--accuracy", accuracy, "at which a run ends")->capture_default_str();
  app.add_option("--price", price, "of this machine, in US dollars per hour");
  app.add_option("--json", json, "file for Google Benchmark's JSON");
  app.add_option("--levers", waterfall, "file for the waterfall, levers.json");
  app.add_option("--data", folder, "folder of the four idx files")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(threads);

  try {
    // The test images choose nothing: recipes are compared by images held out of the training set.
    auto const [rows, held_out] =
        fr::split(fr::read_mnist(folder, fr::Split::train), {0.9, 0.1}, {.seed = 1});
    fr::TensorDataset train(rows, {.batch = batch});
    fr::TensorDataset valid(held_out, {.batch = 500, .shuffle = false});

    // [begin job]
    fr::CompareSettings settings{.settings = {.epochs = epochs, .seed = 1},
                                 .target = {.metric = "accuracy", .at_least = accuracy},
                                 .repeats = repeats,
                                 .progress = &std::cerr};
    if (price != 0) settings.dollars_per_hour = price;
    if (steps != 0) {
      settings.settings.epochs.reset();
      settings.settings.steps = steps;
      settings.target = {};
    }
    // Behind the settings are policies that all recipes share: names leave them out.
    fr::CompareJob const job{network,  fr::CrossEntropy{},
                             train,    valid,
                             settings, fr::Validate<fr::Every<100>, fr::Accuracy>{}};
    // [end job]
    // [begin compare]
    // Two optimizers, two formats, with gradient clipping and without: eight recipes.
    auto const recipes =
        fr::product(fr::Recipe<>{}, fr::Axis<fr::Optimize<fr::AdamW>, fr::Optimize<fr::SGD>>{},
                    fr::Axis<fr::Precision<fr::FP32>, fr::Precision<fr::BF16>>{},
                    fr::Axis<fr::Without, fr::ClipNorm<>>{});
    fr::Comparison const found = fr::compare(recipes, job, [](auto& trainer) {
      auto& optimizer = trainer.optimizer();
      optimizer.lr = 2e-3;
      if constexpr (requires { optimizer.momentum; }) {
        optimizer.lr = 0.05;
        optimizer.momentum = 0.9;
      }
    });
    std::cout << found;
    // [end compare]
    if (!json.empty()) found.json(json);
    if (!waterfall.empty()) found.levers(waterfall, "Recipes on Fashion-MNIST");
    return EXIT_SUCCESS;
  } catch (fr::Error const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
