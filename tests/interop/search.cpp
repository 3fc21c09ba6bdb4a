// SPDX-License-Identifier: Apache-2.0
// needs: recipes
// A worker of a small search: interop_search FOLDER halving|hyperband|asha|front [MILLISECONDS OF A STEP]
// Prints the result as one line of JSON. search.py starts, kills and reads it.
#include <ATen/CPUGeneratorImpl.h>

#include <frugal/frugal.hpp>
#include <frugal/model.hpp>
#include <frugal/report/audit.hpp>
#include <frugal/search.hpp>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <thread>

namespace fr = frugal;

namespace {

struct Shape {
  int width = 8;
  std::string activation = "relu";
};

struct Net : torch::nn::Module {
  explicit Net(Shape const& shape)
      : gelu(shape.activation == "gelu"),
        first(register_module("first", torch::nn::Linear(10, shape.width))),
        dropout(register_module("dropout", torch::nn::Dropout(0.1))),
        second(register_module("second", torch::nn::Linear(shape.width, 4))) {}
  at::Tensor forward(at::Tensor const& data) {
    at::Tensor const hidden = first->forward(data);
    return second->forward(dropout->forward(gelu ? at::gelu(hidden) : at::relu(hidden)));
  }
  bool gelu;
  torch::nn::Linear first;
  torch::nn::Dropout dropout;
  torch::nn::Linear second;
};

/// Takes some time, so that a kill meets a rung.
struct Slow {
  int milliseconds = 0;
  /// What a search compares of it: nothing.
  std::string settings() const { return {}; }
  template <class Module>
  fr::Loss operator()(Module& module, fr::Batch const& batch) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    return fr::CrossEntropy{}(module, batch);
  }
};

fr::Batch rows(std::int64_t count, std::uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  at::Tensor const data = at::randn({count, 10}, generator);
  return {data, (data.narrow(1, 0, 4) + 0.5 * data.narrow(1, 4, 4)).argmax(1)};
}

int run(int argc, char** argv) {
  std::string const kind = argc > 2 ? argv[2] : "halving";
  int const milliseconds = argc > 3 ? std::atoi(argv[3]) : 0;
  fr::TensorDataset train(rows(256, 1), {.batch = 16});
  fr::TensorDataset valid(rows(128, 2), {.batch = 64, .shuffle = false});
  using Adam = fr::Recipe<fr::Optimize<fr::AdamW>, fr::Schedule<fr::Cosine>>;
  fr::SearchSpace const space{fr::product(Adam{}, fr::Axis<fr::Without, fr::ClipNorm<>>{}),
                              fr::vary<&fr::Optimize<fr::AdamW>::lr>(fr::LogUniform{1e-4, 1e-1}),
                              fr::vary<&fr::ClipNorm<>::max_norm>(fr::LogUniform{0.1, 10}),
                              fr::vary<&Shape::width>(fr::Int{4, 32, 4}),
                              fr::vary<&Shape::activation>(fr::Choice{{"relu", "gelu"}})};
  fr::SearchJob const job{[](Shape const& shape) { return Net(shape); },
                          Slow{milliseconds},
                          train,
                          valid,
                          fr::Validate<fr::Every<9>, fr::Accuracy>{},
                          fr::Checkpoint<fr::Every<4>>{}};
  fr::SearchSettings settings{.settings = {.run_dir = argv[1], .steps = 27, .seed = 3}};
  settings.finalists = {.count = 2, .seeds = 2};
  settings.dollars_per_hour = 2;
  fr::SearchOutcome const found = [&] {
    if (kind == "hyperband") return fr::search(space, job, settings, fr::Hyperband<>{.least = 3});
    if (kind == "asha")
      return fr::search(space, job, settings, fr::Asha<>{.trials = 12, .least = 3});
    if (kind == "front") {
      settings.objectives = {{.name = "accuracy", .maximise = true}, {.name = "bytes"}};
      settings.winner_by = "accuracy";
      return fr::search(space, job, settings, fr::RandomSearch{.trials = 12});
    }
    return fr::search(space, job, settings, fr::SuccessiveHalving<>{.trials = 12, .least = 3},
                      fr::Tpe{});
  }();
  if (found.interrupted) return found.exit_code();
  found.page(std::filesystem::path(argv[1]) / "search.html");
  fr::SearchTrial const& best = found.best();
  Net net({.width = static_cast<int>(*best.candidate.values[2]),
           .activation = *best.candidate.values[3] == 0 ? "relu" : "gelu"});
  static_cast<void>(fr::load_weights(net, found.weights));
  std::string trials;
  for (fr::SearchTrial const& each : found.history.trials) {
    trials += (trials.empty() ? "" : ",") + std::string("[") +
              std::to_string(static_cast<int>(each.state));
    for (fr::RungResult const& rung : each.rungs) {
      char text[64];
      std::snprintf(text, sizeof text, ",%.17g", rung.values[0]);
      trials += text;
    }
    trials += "]";
  }
  std::cout << "{\"winner\":" << *found.winner << ",\"weights\":" << fr::hash_of_tensors(net)
            << ",\"trials\":[" << trials << "]}" << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  try {
    return run(argc, argv);
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
