// SPDX-License-Identifier: Apache-2.0
// Trains every legal combination of a few policies from the same weights, on the same batches of
// Fashion-MNIST, and prints a table. docs/compare.md goes through this file.
//
// Shapes: B images, 1x28x28 each; 10 classes.
#include <frugal/frugal.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

namespace fr = frugal;
namespace nn = torch::nn;

// [begin recipes]
// Two optimizers, two formats, with a schedule and without: eight recipes.
using Compared = fr::legal_recipes<
    fr::Recipe<>::product<fr::Axis<fr::Optimize<fr::AdamW>, fr::Optimize<fr::SGD>>,
                          fr::Axis<fr::Precision<fr::FP32>, fr::Precision<fr::BF16>>,
                          fr::Axis<fr::Without, fr::Schedule<fr::Warmup<50>, fr::Cosine>>>>;
static_assert(Compared::size == 8);
// [end recipes]

struct Result {
  std::string recipe;
  double loss = 0;
  double accuracy = 0;
  double seconds = 0;
  double samples_per_second = 0;
};

nn::Sequential network() {
  torch::manual_seed(1);  // every recipe starts from these weights
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 16, 5).stride(2)), nn::ReLU(),
                        nn::Conv2d(nn::Conv2dOptions(16, 32, 5).stride(2)), nn::ReLU(),
                        nn::Flatten(), nn::Linear(32 * 4 * 4, 10));
}

// [begin run]
// Trains one recipe. The trainer adds the policies that all recipes share: names leave them out.
template <class R>
Result run(fr::Resident& train, fr::Resident& test, std::uint64_t steps) {
  fr::Trainer<nn::Sequential, fr::CrossEntropy, R,
              fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>>
      trainer{network(), {.steps = steps, .seed = 1}};
  auto& optimizer = trainer.template policy<fr::kinds::optimizer>();
  optimizer.lr = 2e-3;
  if constexpr (requires { optimizer.momentum; }) {
    optimizer.lr = 0.05;
    optimizer.momentum = 0.9;
  }
  fr::Report const report = trainer.fit(train);
  fr::Metrics const found = trainer.evaluate(test);
  return {.recipe = fr::recipe_name<R>(),
          .loss = found["loss"],
          .accuracy = found["accuracy"],
          .seconds = report.seconds,
          .samples_per_second = static_cast<double>(report.samples) / report.seconds};
}
// [end run]

void print(std::vector<Result> const& results) {
  std::size_t width = 6;
  for (Result const& each : results) width = std::max(width, each.recipe.size());
  auto const column = static_cast<int>(width);
  std::cout << std::left << std::setw(column) << "recipe" << std::right
            << "  test loss  accuracy  seconds  samples/s\n"
            << std::fixed;
  for (Result const& each : results) {
    std::cout << std::left << std::setw(column) << each.recipe << std::right  //
              << std::setprecision(4) << std::setw(11) << each.loss           //
              << std::setprecision(2) << std::setw(9) << 100 * each.accuracy << '%'
              << std::setprecision(1) << std::setw(9) << each.seconds  //
              << std::setprecision(0) << std::setw(11) << each.samples_per_second << '\n';
  }
}

int main(int argc, char** argv) {
  std::uint64_t steps = 200;
  std::int64_t batch = 128;
  int threads = 1;
  std::string folder = "/usr/share/datasets/fashion-mnist";

  CLI::App app("Compares recipes on Fashion-MNIST.");
  app.add_option("--steps", steps, "optimizer steps of each recipe")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--batch", batch, "images per step")
      ->check(CLI::Range(1, 60000))
      ->capture_default_str();
  app.add_option("--threads", threads, "threads for LibTorch")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--data", folder, "folder of the four idx files")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(threads);

  try {
    fr::Resident train(fr::read_mnist(folder, fr::Split::train), {.batch = batch});
    fr::Resident test(fr::read_mnist(folder, fr::Split::test), {.batch = 500, .shuffle = false});
    std::cout << Compared::size << " recipes, " << steps << " steps of " << batch
              << " images each, the same weights and batches, " << threads << " thread(s)\n\n";
    // [begin compare]
    std::vector<Result> results;
    fr::for_each_recipe(Compared{}, [&]<class R>() {
      run<R>(train, test, 20);  // first allocations and kernels are not timed
      results.push_back(run<R>(train, test, steps));
    });
    print(results);
    // [end compare]
    return EXIT_SUCCESS;
  } catch (fr::Error const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
