// SPDX-License-Identifier: Apache-2.0
// needs: recipes
// frugal's side of bench/search.py: one part per call, which prints one line of JSON. `curves` may run in several processes with
// one folder, as may `kills`, whose workers are killed and started again.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "../search_curves.hpp"
#include "../search_jobs.hpp"

namespace {

using namespace frugal_bench;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// ---- architectures ------------------------------------------------------------------------------

template <class Space, class Job>
json architecture(Options const& options, Space const& space, Job const& job, Images& images) {
  fr::SearchSettings settings = settings_of(options);
  settings.budget.steps = options.budget * options.steps;
  fr::SearchOutcome const found = [&] {
    if (options.method == "evolution") {
      return fr::search(space, job, settings, fr::RandomSearch{},
                        fr::Evolution{.population = 12, .tournament = 4});
    }
    if (options.method == "hyperband") {
      return fr::search(space, job, settings, fr::Hyperband<fr::Eta<3>>{.rounds = 0}, fr::Tpe{});
    }
    return fr::search(space, job, settings,
                      fr::SuccessiveHalving<fr::Eta<3>>{.least = options.steps / 9});
  }();
  Shape shape;
  std::apply(
      [&](auto const&... each) {
        std::size_t i = 0;
        auto const set = [&](auto const& setting) {
          if (auto const value = found.best().candidate.values[i++]) setting.set(shape, *value);
        };
        (set(each), ...);
      },
      space.settings);
  nn::Sequential net = network(shape);
  static_cast<void>(fr::load_weights(net, found.weights));
  fr::Trainer trainer{net, fr::CrossEntropy{}, fr::Settings{}, fr::Optimize<fr::AdamW>{},
                      fr::Validate<fr::Accuracy>{}};
  fr::Metrics const tested = trainer.evaluate(images.test);
  return {{"samples", samples_of(found.history)},
          {"trials", found.history.trials.size()},
          {"valid_loss", found.best().values().front()},
          {"loss", tested["loss"]},
          {"accuracy", tested["accuracy"]},
          {"winner", found.label(found.best().candidate)}};
}

json images_part(Options const& options) {
  Images images(options.data);
  fr::SearchSpace const space{
      fr::product(fr::Recipe<fr::Schedule<fr::Warmup<20>, fr::Cosine>>{},
                  fr::Axis<fr::Optimize<fr::AdamW>, fr::Optimize<fr::SGD>>{},
                  fr::Axis<fr::Without, fr::ClipNorm<>>{}),
      fr::vary<&fr::Optimize<fr::AdamW>::lr>("adamw lr", fr::LogUniform{1e-4, 3e-2}),
      fr::vary<&fr::Optimize<fr::SGD>::lr>("sgd lr", fr::LogUniform{1e-3, 1}),
      fr::vary<&fr::Optimize<fr::SGD>::momentum>(fr::Uniform{0, 0.95}),
      fr::vary<&fr::ClipNorm<>::max_norm>(fr::LogUniform{0.1, 10}),
      fr::vary<&Shape::channels>(fr::Int{.low = 4, .high = 12, .step = 4}),
      fr::vary<&Shape::depth>(fr::Int{1, 3}),
      fr::vary<&Shape::kernel>(fr::Int{.low = 3, .high = 5, .step = 2}),
      fr::vary<&Shape::hidden>(fr::Int{.low = 16, .high = 128, .log = true}),
      fr::vary<&Shape::norm>(fr::Int{0, 1}),
      fr::vary<&Shape::dropout>(fr::Uniform{0, 0.5}),
      fr::vary<&Shape::activation>(fr::Choice{{"relu", "gelu", "silu"}})};
  fr::SearchJob const job{[](Shape const& shape) { return network(shape); }, fr::CrossEntropy{},
                          images.train, images.valid, fr::Checkpoint<fr::Every<100>>{}};
  if (options.way == "curves") return curves(options, space, job);
  if (options.way == "halving") return halving(options, space, job, images.handed_out);
  return architecture(options, space, job, images);
}

json gpt_part(Options const& options) {
  Text text(options.text);
  fr::SearchSpace const space{
      fr::product(fr::Recipe<fr::Optimize<fr::AdamW>, fr::ClipNorm<>>{},
                  fr::Axis<fr::Schedule<fr::Cosine>, fr::Schedule<fr::Warmup<20>, fr::Cosine>,
                           fr::Schedule<fr::Warmup<60>, fr::Cosine>>{}),
      fr::vary<&fr::Optimize<fr::AdamW>::lr>(fr::LogUniform{1e-4, 3e-2}),
      fr::vary<&GptShape::width>(fr::Int{.low = 32, .high = 128, .step = 32}),
      fr::vary<&GptShape::layers>(fr::Int{1, 4})};
  fr::SearchJob const job{[](GptShape const& shape) { return gpt(shape); }, fr::CrossEntropy{},
                          text.train, text.valid, fr::Checkpoint<fr::Every<100>>{}};
  if (options.way == "curves") return curves(options, space, job);
  return halving(options, space, job, text.handed_out);
}

// ---- the cost of the search itself --------------------------------------------------------------

using Cosine = fr::Schedule<fr::Warmup<20>, fr::Cosine>;
using Validation = fr::Validate<fr::Every<90>, fr::Accuracy>;
using Saves = fr::Checkpoint<fr::Every<90>>;

/// The trials of a search, each by a Trainer of its own. Returns their losses.
std::vector<double> by_hand(Options const& options, Images& images,
                            fr::SearchHistory const& history, std::filesystem::path const& folder) {
  std::vector<double> losses;
  for (fr::SearchTrial const& each : history.trials) {
    auto const& values = each.candidate.values;
    Shape shape;
    shape.channels = static_cast<int>(*values[1]);
    shape.hidden = static_cast<int>(*values[2]);
    torch::manual_seed(options.seed);
    fr::Trainer trainer{network(shape),
                        fr::CrossEntropy{},
                        fr::Settings{.run_dir = folder / std::to_string(losses.size()),
                                     .steps = options.steps,
                                     .seed = options.seed},
                        fr::Optimize<fr::AdamW>{.lr = *values[0]},
                        Cosine{},
                        Validation{},
                        Saves{}};
    static_cast<void>(trainer.fit(images.train, images.valid));
    losses.push_back(trainer.evaluate(images.valid)["loss"]);
  }
  return losses;
}

json orchestration(Options const& options) {
  Images images(options.data);
  fr::SearchSpace const space{
      fr::product(fr::Recipe<fr::Optimize<fr::AdamW>, Cosine>{}, fr::Axis<fr::Without>{}),
      fr::vary<&fr::Optimize<fr::AdamW>::lr>(fr::LogUniform{1e-4, 3e-2}),
      fr::vary<&Shape::channels>(fr::Int{.low = 8, .high = 16, .step = 4}),
      fr::vary<&Shape::hidden>(fr::Int{.low = 32, .high = 128, .log = true})};
  fr::SearchJob const job{[](Shape const& shape) { return network(shape); },
                          fr::CrossEntropy{},
                          images.train,
                          images.valid,
                          Validation{},
                          Saves{}};
  auto const search = [&](std::uint64_t steps, std::string const& name) {
    fr::SearchSettings settings = settings_of(options);
    settings.settings.run_dir = options.folder + "/" + name;
    settings.settings.steps = steps;
    return fr::search(space, job, settings, fr::RandomSearch{.trials = options.trials}).history;
  };
  // The candidates do not depend on the steps.
  fr::SearchHistory const planned = search(9, "warm-up");
  json line{{"candidates", json::array()}, {"rounds", json::array()}};
  for (fr::SearchTrial const& each : planned.trials) {
    line["candidates"].push_back({{"lr", *each.candidate.values[0]},
                                  {"channels", *each.candidate.values[1]},
                                  {"hidden", *each.candidate.values[2]}});
  }
  bool same = true;
  for (std::uint64_t r = 0; r < options.rounds; ++r) {
    std::string const name = std::to_string(r);
    fr::SearchHistory found;
    std::vector<double> losses;
    double seconds = 0, alone = 0;
    auto const ours = [&] {
      auto const begin = Clock::now();
      found = search(options.steps, "search-" + name);
      seconds = since(begin);
    };
    auto const theirs = [&] {
      auto const begin = Clock::now();
      losses = by_hand(options, images, planned, options.folder + "/hand-" + name);
      alone = since(begin);
    };
    if (r % 2 == 0) ours();
    theirs();
    if (r % 2 == 1) ours();
    double own = 0;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      same = same && losses[i] == found.trials[i].values().front();
      own += found.trials[i].seconds();
    }
    line["rounds"].push_back({{"search", seconds}, {"own", own}, {"by_hand", alone}});
  }
  line["same"] = same;
  return line;
}

// ---- kills --------------------------------------------------------------------------------------

/// A worker of a small search whose steps take some time, so that a kill meets them.
json kills(Options const& options) {
  auto const make = [](std::int64_t count, std::int64_t offset) {
    at::Tensor const data =
        at::sin(at::arange(offset, offset + count * 10, at::kFloat).view({count, 10}).square());
    return fr::Batch{data, data.narrow(1, 0, 4).argmax(1)};
  };
  fr::TensorDataset train(make(512, 1), {.batch = 16});
  fr::TensorDataset valid(make(128, 100'000), {.batch = 64, .shuffle = false});
  auto const slow = [&](auto& module, fr::Batch const& batch) {
    std::this_thread::sleep_for(std::chrono::milliseconds(options.milliseconds));
    return fr::CrossEntropy{}(module, batch);
  };
  fr::SearchSpace const space{
      fr::product(fr::Recipe<fr::Optimize<fr::AdamW>>{}, fr::Axis<Cosine>{}),
      fr::vary<&fr::Optimize<fr::AdamW>::lr>(fr::LogUniform{1e-4, 1e-1}),
      fr::vary<&Shape::hidden>(fr::Int{4, 32})};
  fr::SearchJob const job{[](Shape const& shape) {
                            return nn::Sequential(nn::Linear(10, shape.hidden), nn::ReLU(),
                                                  nn::Dropout(0.1), nn::Linear(shape.hidden, 4));
                          },
                          slow,
                          train,
                          valid,
                          StepLog{options.folder + ".steps"},
                          fr::Checkpoint<fr::Every<5>>{}};
  fr::SearchOutcome const found =
      fr::search(space, job, settings_of(options), halving_of(options), fr::Tpe{});
  if (found.interrupted) std::exit(found.exit_code());
  std::vector<int> states;
  for (fr::SearchTrial const& each : found.history.trials) {
    states.push_back(static_cast<int>(each.state));
  }
  return {{"winner", *found.winner}, {"states", states}, {"values", values_of(found.history)}};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("One part of bench/search.py.");
  app.add_option("--way", options.way)
      ->required()
      ->check(CLI::IsMember({"curves", "halving", "architecture", "orchestration", "kills"}));
  app.add_option("--job", options.job)->check(CLI::IsMember({"images", "gpt"}));
  app.add_option("--method", options.method)
      ->check(CLI::IsMember({"evolution", "hyperband", "halving"}));
  app.add_option("--folder", options.folder, "of the search")->required();
  app.add_option("--data", options.data, "folder of Fashion-MNIST");
  app.add_option("--text", options.text, "file");
  app.add_option("--steps", options.steps, "of a whole run")->check(CLI::Range(9, 1000000));
  app.add_option("--trials", options.trials)->check(CLI::PositiveNumber);
  app.add_option("--of", options.of, "trials of a replayed search")->check(CLI::PositiveNumber);
  app.add_option("--resamples", options.resamples);
  app.add_option("--budget", options.budget, "in whole runs")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed);
  app.add_option("--milliseconds", options.milliseconds, "of a step of kills");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  try {
    json const line = options.way == "kills"           ? kills(options)
                      : options.way == "orchestration" ? orchestration(options)
                      : options.job == "gpt"           ? gpt_part(options)
                                                       : images_part(options);
    std::cout << line << std::endl;
    return 0;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
