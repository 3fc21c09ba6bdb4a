// SPDX-License-Identifier: Apache-2.0
// Trains a small convolutional network on Fashion-MNIST until it has a given accuracy, in one of
// the stages of course.py, and prints one line of JSON. A stage with checkpoints may be killed at
// any moment and started again with the same arguments. --list prints the step levers.
//
// Shapes: B images, 1x28x28 each; 10 classes.
#include <frugal/frugal.hpp>

#include <torch/data/datasets/base.h>
#include <torch/data/transforms/stack.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace fr = frugal;
namespace nn = torch::nn;
using nlohmann::json;

namespace {

struct Asked {
  std::string stage = "plain";
  std::set<std::string> levers;
  double target = 0.87;
  double learning_rate = 1e-3;
  std::uint64_t seed = 1, epochs = 10, steps = 0;
  std::int64_t batch = 128;
  std::filesystem::path run;
  std::string data = "/usr/share/datasets/fashion-mnist";
};

nn::Sequential network(std::uint64_t seed) {
  torch::manual_seed(seed);
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 16, 5).stride(2)), nn::ReLU(),
                        nn::Conv2d(nn::Conv2dOptions(16, 32, 5).stride(2)), nn::ReLU(),
                        nn::Flatten(), nn::Linear(32 * 4 * 4, 10));
}

/// A data set that returns one image at a time, as in tutorials.
struct Images : torch::data::datasets::Dataset<Images> {
  explicit Images(fr::Batch all) : set(std::move(all)) {}
  torch::data::Example<> get(std::size_t index) override {
    auto const i = static_cast<std::int64_t>(index);
    return {set.data[i], set.target[i]};
  }
  std::optional<std::size_t> size() const override {
    return static_cast<std::size_t>(set.data.size(0));
  }
  fr::Batch set;
};

/// One type for both ways to the data, so that recipes are compiled once.
class Data {
  using Stacked = fr::DatasetSource<Images>;

 public:
  Data(fr::Batch const& set, bool resident, std::int64_t batch)
      : source_(Stacked(Images(set), {.batch = batch})) {
    if (resident)
      source_.emplace<fr::TensorDataset>(set.data, set.target, fr::LoaderOptions{.batch = batch});
  }
  void seek(fr::Cursor const& cursor) {
    std::visit([&](auto& source) { source.seek(cursor); }, source_);
  }
  std::optional<fr::Batch> next() {
    return std::visit([](auto& source) { return source.next(); }, source_);
  }
  std::uint64_t samples() const {
    return std::visit([](auto const& source) { return source.samples(); }, source_);
  }
  std::uint64_t batches() const {
    return std::visit([](auto const& source) { return source.batches(); }, source_);
  }

 private:
  std::variant<Stacked, fr::TensorDataset> source_;
};

/// Ends the run at the first validation with the accuracy. A run that is resumed behind it ends
/// too.
struct StopAt {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "StopAt";
  };
  using listens = fr::list<fr::on::validated>;
  using after = fr::list<fr::kinds::validate>;
  double accuracy = 2;

  class State {
   public:
    using transient = void;
    explicit State(StopAt const& settings) : accuracy_(settings.accuracy) {}
    fr::flow on_validated(fr::Validated& phase) {
      return phase.metrics["accuracy"] >= accuracy_ ? fr::flow::stop : fr::flow::proceed;
    }

   private:
    double accuracy_;
  };
};

// ---- the levers ---------------------------------------------------------------------------------

// The price per hour: what a machine needs that may be taken away.
using OnSpot = fr::Recipe<fr::Checkpoint<fr::Every<100>, fr::Async>, fr::Spot<fr::SigtermSave>,
                          fr::Log<fr::Every<100>>>;
// The hours per run: each is measured on this machine first.
constexpr std::string_view step_levers[] = {"fused", "bf16", "keep", "resident"};
// The runs to convergence: a schedule, and a look often enough to stop in time.
using Converging = fr::Recipe<fr::Schedule<fr::Warmup<50>, fr::Cosine>,
                              fr::Validate<fr::Every<100>, fr::Accuracy>>;
using Plain = fr::Recipe<fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>>;

template <class Trainer>
void set_learning_rate(Trainer& trainer, double rate) {
  auto& optimizer = trainer.template policy<fr::kinds::optimizer>();
  if constexpr (requires { optimizer.lr; }) {
    optimizer.lr = rate;
  } else {
    optimizer.make = [rate](std::vector<at::Tensor> parameters) {
      return std::make_unique<torch::optim::AdamW>(std::move(parameters),
                                                   torch::optim::AdamWOptions(rate));
    };
  }
}

template <class Recipe>
json train(Asked const& asked) {
  // What ends a run is held out of the training images: 50,000 to train, 10,000 to validate.
  auto const [rows, held_out] =
      fr::split(fr::read_mnist(asked.data, fr::Split::train), {50000, 10000}, {.seed = 1});
  Data data(rows, asked.levers.contains("resident"), asked.batch);
  fr::TensorDataset valid(held_out, {.batch = 500, .shuffle = false});
  fr::Settings settings{.run_dir = asked.run, .epochs = asked.epochs, .seed = asked.seed};
  if (asked.steps > 0) settings.steps = asked.steps;
  fr::Trainer<nn::Sequential, fr::CrossEntropy, Recipe, StopAt> trainer{network(asked.seed),
                                                                        settings};
  set_learning_rate(trainer, asked.learning_rate);
  trainer.template policy<StopAt::kind>().accuracy = asked.target;
  fr::Report const report = trainer.fit(data, valid);
  json validations = json::array();
  for (fr::Validation const& each : report.validations) {
    validations.push_back({each.step, each.metrics["accuracy"]});
  }
  return {
      {"recipe", fr::recipe_name<Recipe>()}, {"steps", report.steps},
      {"samples", report.samples},           {"seconds", report.seconds},
      {"preempted", report.preempted},       {"reached", report.stopped_by == StopAt::kind::name},
      {"validations", validations}};
}

template <bool Add, class Recipe, class P>
using with_if = typename std::conditional_t<Add, std::type_identity<fr::Recipe<Recipe, P>>,
                                            std::type_identity<Recipe>>::type;

template <class Recipe, bool Fused, bool Bf16, bool Keep>
json by(Asked const& asked) {
  using Optimizer = std::conditional_t<Fused, fr::Optimize<fr::AdamW>, fr::Optimize<fr::Any>>;
  using Rounded = with_if<Bf16, fr::Recipe<Optimizer, Recipe>, fr::Precision<fr::BF16>>;
  return train<with_if<Keep, Rounded, fr::KeepHostMemory>>(asked);
}
/// Turns the levers that are policies, the first three, into types.
template <class Recipe, bool... Known>
json choose(Asked const& asked) {
  if constexpr (sizeof...(Known) == 3) {
    return by<Recipe, Known...>(asked);
  } else {
    constexpr std::string_view next = step_levers[sizeof...(Known)];
    return asked.levers.contains(std::string(next)) ? choose<Recipe, Known..., true>(asked)
                                                    : choose<Recipe, Known..., false>(asked);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Asked asked;
  std::vector<std::string> levers;
  bool list = false;
  int threads = 0;
  CLI::App app("Trains to an accuracy in a stage of the course.");
  app.add_flag("--list", list, "print the step levers as JSON");
  app.add_option("--stage", asked.stage)->check(CLI::IsMember({"plain", "spot", "steps", "runs"}));
  app.add_option("--levers", levers, "step levers, by name")->delimiter(',');
  app.add_option("--target", asked.target, "accuracy at which the run ends");
  app.add_option("--lr", asked.learning_rate);
  app.add_option("--seed", asked.seed);
  app.add_option("--epochs", asked.epochs, "the most epochs; the schedule's length");
  app.add_option("--steps", asked.steps, "end there; 0: no limit");
  app.add_option("--batch", asked.batch);
  app.add_option("--threads", threads, "0: as many as LibTorch takes");
  app.add_option("--run", asked.run, "run directory");
  app.add_option("--data", asked.data);
  CLI11_PARSE(app, argc, argv);
  if (list) {
    std::cout << json{{"levers", step_levers}} << '\n';
    return 0;
  }
  if (threads > 0) at::set_num_threads(threads);
  for (std::string const& lever : levers) {
    if (std::ranges::find(step_levers, lever) != std::ranges::end(step_levers)) continue;
    std::cerr << "course: there is no step lever \"" << lever << "\"; --list prints them.\n";
    return 1;
  }
  asked.levers = {levers.begin(), levers.end()};
  try {
    json told;
    if (asked.stage == "plain") {
      told = choose<Plain>(asked);
    } else if (asked.stage == "runs") {
      told = choose<fr::Recipe<Converging, OnSpot>>(asked);
    } else {
      told = choose<fr::Recipe<Plain, OnSpot>>(asked);
    }
    std::cout << told << '\n';
    return told["preempted"] ? 75 : 0;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
