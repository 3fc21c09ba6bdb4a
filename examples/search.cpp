// SPDX-License-Identifier: Apache-2.0
// needs: recipes
// Searches recipes, learning rates and architectures on Fashion-MNIST by successive halving. Start it several times with
// one folder, on one machine or on several: each process takes trials that no other has. docs/search.md goes through
// this file.
//
// Shapes: B images, 1x28x28 each; 10 classes.
#include <frugal/frugal.hpp>
#include <frugal/search.hpp>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>

namespace fr = frugal;
namespace nn = torch::nn;

// [begin module]
/// What is searched of the network. The defaults are what it has where the space varies nothing.
struct Shape {
  int channels = 16, hidden = 64;
  double dropout = 0;
};

/// One type for all shapes: a thousand of them compile once.
nn::Sequential network(Shape const& shape) {
  return nn::Sequential(
      nn::Conv2d(nn::Conv2dOptions(1, shape.channels, 5).stride(2)), nn::ReLU(),
      nn::Conv2d(nn::Conv2dOptions(shape.channels, 2 * shape.channels, 5).stride(2)), nn::ReLU(),
      nn::Flatten(), nn::Linear(2 * shape.channels * 4 * 4, shape.hidden), nn::ReLU(),
      nn::Dropout(shape.dropout), nn::Linear(shape.hidden, 10));
}
// [end module]

int main(int argc, char** argv) {
  std::uint64_t trials = 27, steps = 1350;
  double price = 0;
  bool only_explain = false;
  std::string data = "/usr/share/datasets/fashion-mnist", folder = "searches/fashion-mnist";
  CLI::App app("Searches recipes, settings and architectures on Fashion-MNIST.");
  app.add_option("--trials", trials, "of the first rung")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--steps", steps, "of a whole run")
      ->check(CLI::Range(27, 1000000))
      ->capture_default_str();
  app.add_option("--price", price, "of this machine, in US dollars per hour");
  app.add_option("--folder", folder, "of the search")->capture_default_str();
  app.add_option("--data", data, "folder of the four idx files")->capture_default_str();
  app.add_flag("--explain", only_explain, "print rungs and costs, and train nothing");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);

  try {
    // The search never sees the test images: they measure the winner afterwards.
    fr::Batch const all = fr::read_mnist(data, fr::Split::train);
    fr::TensorDataset train(all.data.narrow(0, 0, 50000), all.target.narrow(0, 0, 50000),
                            {.batch = 128});
    fr::TensorDataset valid(all.data.narrow(0, 50000, 10000), all.target.narrow(0, 50000, 10000),
                            {.batch = 500, .shuffle = false});

    // [begin space]
    // Two optimizers, with gradient clipping and without: four recipes.
    auto const recipes = fr::product(fr::Recipe<fr::Schedule<fr::Warmup<50>, fr::Cosine>>{},
                                     fr::Axis<fr::Optimize<fr::AdamW>, fr::Optimize<fr::SGD>>{},
                                     fr::Axis<fr::Without, fr::ClipNorm<>>{});
    fr::SearchSpace const space{
        recipes,
        // A recipe has a setting if one of its policies has the member.
        fr::vary<&fr::Optimize<fr::AdamW>::lr>("adamw lr", fr::LogUniform{1e-4, 3e-2}),
        fr::vary<&fr::Optimize<fr::SGD>::lr>("sgd lr", fr::LogUniform{1e-3, 1}),
        fr::vary<&fr::Optimize<fr::SGD>::momentum>(fr::Uniform{0, 0.95}),
        fr::vary<&fr::ClipNorm<>::max_norm>(fr::LogUniform{0.1, 10}),
        // Members of what make() takes are the architecture.
        fr::vary<&Shape::channels>(fr::Int{.low = 4, .high = 32, .step = 4}),
        fr::vary<&Shape::hidden>(fr::Int{.low = 16, .high = 256, .log = true}),
        fr::vary<&Shape::dropout>(fr::Uniform{0, 0.5}),
        // Members of the objective are settings, too.
        fr::vary<&fr::CrossEntropy::label_smoothing>(fr::Uniform{0, 0.1})};
    // [end space]

    // [begin job]
    // After the data are policies that all recipes share; Checkpoint is one of them.
    fr::SearchJob const job{[](Shape const& shape) { return network(shape); },
                            fr::CrossEntropy{},
                            train,
                            valid,
                            fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
                            fr::Checkpoint<fr::Every<100>>{}};
    fr::SearchSettings settings{.settings = {.run_dir = folder, .steps = steps, .seed = 1},
                                .objectives = {{.name = "accuracy", .maximise = true}},
                                .progress = &std::cerr};
    if (price != 0) settings.dollars_per_hour = price;
    // [end job]

    // [begin search]
    fr::SuccessiveHalving<fr::Eta<3>> const halving{.trials = trials};
    fr::explain(space, job, settings, std::cout, halving, fr::SobolSampler{});
    if (only_explain) return 0;
    fr::SearchOutcome const found = fr::search(space, job, settings, halving, fr::SobolSampler{});
    std::cout << found;
    if (found.interrupted) return found.exit_code();  // 75: start it again
    std::cout << found.code;                          // the winner, to paste
    found.page(found.folder / "search.html");
    // [end search]
    std::cout << "weights: " << found.weights.string() << '\n';
    return 0;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
