// SPDX-License-Identifier: Apache-2.0
// needs: recipes
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report/audit.hpp>
#include <frugal/search.hpp>
#include <frugal/search/sampler/tpe.hpp>

#include <c10/util/Exception.h>

#include "support/files.hpp"
#include "support/running.hpp"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace frugal_test::search_search {

using namespace support;
namespace fr = frugal;

struct Shape {
  int width = 4;
};

/// One type for all widths; dropout draws from the generator in each step.
struct Net : torch::nn::Module {
  explicit Net(Shape const& shape)
      : first(register_module("first", torch::nn::Linear(6, shape.width))),
        norm(register_module("norm", torch::nn::BatchNorm1d(shape.width))),
        second(register_module("second", torch::nn::Linear(shape.width, 3))),
        dropout(register_module("dropout", torch::nn::Dropout(0.2))) {}
  at::Tensor forward(at::Tensor const& data) {
    return second->forward(dropout->forward(torch::relu(norm->forward(first->forward(data)))));
  }
  torch::nn::Linear first;
  torch::nn::BatchNorm1d norm;
  torch::nn::Linear second;
  torch::nn::Dropout dropout;
};

/// Makes a trial end in the way that its width asks for.
struct Odd {
  int signal_at = 0;  ///< raises SIGTERM in this call
  int calls = 0;
  double smoothing = 0;

  /// What a search compares of it: the rest is the test's.
  std::string settings() const { return smoothing == 0 ? "plain" : "smooth"; }
  template <class Module>
  fr::Loss operator()(Module& module, fr::Batch const& batch) {
    if (++calls == signal_at) std::raise(SIGTERM);
    return fr::CrossEntropy{.label_smoothing = smoothing}(module, batch);
  }
};

struct Data {
  fr::TensorDataset train{samples(64).data, samples(64).target, {.batch = 8}};
  fr::TensorDataset valid{
      samples(32, 95).data, samples(32, 95).target, {.batch = 16, .shuffle = false}};
};

using Adam = fr::Recipe<fr::Optimize<fr::AdamW>, fr::Schedule<fr::Cosine>>;
using Averaged =
    fr::Recipe<fr::Optimize<fr::SGD>, fr::Schedule<fr::Cosine>, fr::Average<fr::Ema<0.9>>>;

auto space() {
  return fr::SearchSpace{fr::Axis<Adam, Averaged>{},
                         fr::vary<&fr::Optimize<fr::AdamW>::lr>(fr::LogUniform{1e-3, 1e-1}),
                         fr::vary<&fr::Optimize<fr::SGD>::lr>("sgd lr", fr::LogUniform{1e-2, 1}),
                         fr::vary<&Shape::width>(fr::Int{2, 8, 2}),
                         fr::vary<&fr::Optimize<fr::AdamW>::weight_decay>(fr::Uniform{0, 0.1})};
}

/// Widths that are no networks, if it is strict.
struct Make {
  bool strict = false;
  bool wide = false;
  auto operator()(Shape const& shape) const {
    if (strict && shape.width == 6) throw std::runtime_error("a width of 6 is not supported");
    if (strict && shape.width == 8) {
      TORCH_CHECK_WITH(OutOfMemoryError, false, "a width of 8 does not fit");
    }
    Net net({.width = shape.width + (wide ? 1 : 0)});
    if (strict && shape.width == 2) {
      at::NoGradGuard const no_gradients;
      net.second->bias.fill_(std::numeric_limits<float>::quiet_NaN());
    }
    return net;
  }
};

Net make_net(Shape const& shape) { return Net(shape); }

using Validates = fr::Validate<fr::Every<3>, fr::Accuracy>;
auto job_of(Data& data, Odd odd = {}, Make make = {}) {
  return fr::SearchJob{make,       odd,         data.train,
                       data.valid, Validates{}, fr::Checkpoint<fr::Every<5>>{}};
}
fr::SearchSettings settings_of(TemporaryFolder const& folder) {
  return {.settings = {.run_dir = folder.path(), .steps = 27, .seed = 5}};
}

struct Alone {
  std::uint64_t weights = 0;
  fr::Report report{};
};
/// A candidate that is trained by hand, in one piece.
template <class R>
Alone trained_alone(fr::SearchTrial const& trial) {
  TemporaryFolder folder;
  Data data;
  auto const& values = trial.candidate.values;
  torch::manual_seed(trial.seed);
  fr::Trainer<Net, Odd, R, Validates, fr::Checkpoint<fr::Every<5>>> trainer{
      Net({.width = static_cast<int>(*values[2])}),
      {.run_dir = folder.path(), .steps = 27, .seed = trial.seed}};
  trainer.optimizer().lr = *values[trial.candidate.recipe];
  if constexpr (requires { trainer.optimizer().beta2; }) {
    trainer.optimizer().weight_decay = *values[3];
  }
  fr::Report report = trainer.fit(data.train, data.valid);
  return {fr::hash_of_tensors(trainer.module()), std::move(report)};
}
Alone trained_alone(fr::SearchTrial const& trial) {
  return trial.candidate.recipe == 0 ? trained_alone<Adam>(trial) : trained_alone<Averaged>(trial);
}

std::uint64_t weights_in(std::filesystem::path const& folder, fr::SearchTrial const& trial) {
  Net net({.width = static_cast<int>(*trial.candidate.values[2])});
  static_cast<void>(fr::load_weights(net, folder));
  return fr::hash_of_tensors(net);
}
std::filesystem::path weights_of(TemporaryFolder const& folder, std::size_t trial) {
  std::string const digits = std::to_string(trial);
  return folder / ("trials/" + std::string(4 - digits.size(), '0') + digits + "/weights");
}

/// Each complete trial has the weights of its recipe trained alone, and each rung the loss that is measured there.
void check_bits(TemporaryFolder const& folder, fr::SearchOutcome const& found,
                std::size_t at_least) {
  std::size_t compared = 0;
  for (std::size_t i = 0; i < found.history.trials.size() && compared < at_least; ++i) {
    fr::SearchTrial const& trial = found.history.trials[i];
    if (trial.state != fr::TrialState::complete || (trial.rungs.size() < 2 && !trial.repeats))
      continue;
    CAPTURE(i);
    Alone const alone = trained_alone(trial);
    CHECK(weights_in(weights_of(folder, i), trial) == alone.weights);
    for (fr::RungResult const& rung : trial.rungs) {
      bool measured = false;
      for (fr::Validation const& each : alone.report.validations) {
        if (each.step != rung.steps) continue;
        CHECK(each.metrics["loss"] == rung.values[0]);
        measured = true;
      }
      CHECK(measured);
    }
    ++compared;
  }
  CHECK(compared == at_least);
}

template <class Call>
std::string refusal(Call const& call) {
  try {
    call();
  } catch (fr::Error const& error) {
    return error.what();
  }
  return "nothing was thrown";
}
bool has(std::string const& text, std::string const& part) {
  CAPTURE(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

TEST_CASE("promoted trials have the bits of their recipes trained alone, with each schedule") {
  Data data;
  auto const job = job_of(data);
  auto const one = [&](std::size_t at_least, auto const&... parts) {
    TemporaryFolder folder;
    fr::SearchOutcome const found = fr::search(space(), job, settings_of(folder), parts...);
    CHECK(found.exit_code() == 0);
    CHECK(found.winner.has_value());
    check_bits(folder, found, at_least);
    CHECK(weights_in(found.weights, found.best()) ==
          weights_in(weights_of(folder, *found.winner), found.best()));
  };
  SUBCASE("successive halving") { one(3, fr::SuccessiveHalving<>{.trials = 9, .least = 3}); }
  SUBCASE("Hyperband") { one(2, fr::Hyperband<>{.least = 3}); }
  SUBCASE("Asha") { one(2, fr::Asha<>{.trials = 9, .least = 3}); }
  SUBCASE("MedianStop with TPE") {
    one(3, fr::MedianStop{.trials = 6, .startup = 2, .interval = 9}, fr::Tpe{.startup = 3});
  }
}

/// Whether two searches have come to the same.
void check_same(fr::SearchOutcome const& found, fr::SearchOutcome const& whole) {
  CHECK(found.winner == whole.winner);
  REQUIRE(found.history.trials.size() == whole.history.trials.size());
  for (std::size_t i = 0; i < found.history.trials.size(); ++i) {
    fr::SearchTrial const &one = found.history.trials[i], &other = whole.history.trials[i];
    CHECK(one.candidate == other.candidate);
    CHECK(one.state == other.state);
    REQUIRE(one.rungs.size() == other.rungs.size());
    for (std::size_t k = 0; k < one.rungs.size(); ++k) {
      CHECK(one.rungs[k].values == other.rungs[k].values);
      CHECK(one.rungs[k].samples == other.rungs[k].samples);
    }
  }
}

TEST_CASE("a search that a signal stops goes on where it was, and finds the same") {
  Data data;
  TemporaryFolder calm, stopped;
  fr::SuccessiveHalving<> const schedule{.trials = 6, .least = 3};
  fr::SearchOutcome const whole = fr::search(space(), job_of(data), settings_of(calm), schedule);
  // In the middle of a rung, and at the end of one.
  for (int const at : {7, 2, 9, 12}) {
    fr::SearchOutcome const part =
        fr::search(space(), job_of(data, {.signal_at = at}), settings_of(stopped), schedule);
    CHECK(part.interrupted);
    CHECK(part.exit_code() == 75);
  }
  fr::SearchOutcome const found = fr::search(space(), job_of(data), settings_of(stopped), schedule);
  CHECK(found.exit_code() == 0);
  check_same(found, whole);
  check_bits(stopped, found, 3);
}

TEST_CASE("workers that end between a rung and its line in the journal change nothing") {
  Data data;
  TemporaryFolder calm, crashed;
  fr::SuccessiveHalving<> const schedule{.trials = 6, .least = 3};
  int calls = 0;
  bool crashes = false;
  auto const run = [&](TemporaryFolder const& folder) {
    fr::SearchSettings settings = settings_of(folder);
    settings.objectives = {{.name = "half"}, {.name = "train_loss"}};
    settings.winner_by = "half";
    settings.measures["half"] = [&](torch::nn::Module& module) {
      // Every other time the disk is full after the rung was trained, and before it is recorded.
      if (crashes && ++calls % 2 == 1) throw fr::StoreError({"a", "b", "c", "d"});
      return 0.5 * module.parameters()[0].norm().item<double>();
    };
    return fr::search(space(), job_of(data), settings, schedule);
  };
  fr::SearchOutcome const whole = run(calm);
  crashes = true;
  std::optional<fr::SearchOutcome> found;
  int ends = 0;
  while (!found) {
    try {
      found = run(crashed);
    } catch (fr::StoreError const&) {
      ++ends;
    }
  }
  CHECK(ends == 6 + 2 + 1 + 2);
  check_same(*found, whole);
  for (std::size_t i = 0; i < whole.history.trials.size(); ++i) {
    if (whole.history.trials[i].state != fr::TrialState::complete) continue;
    CHECK(weights_in(weights_of(crashed, i), whole.history.trials[i]) ==
          weights_in(weights_of(calm, i), whole.history.trials[i]));
  }
}

TEST_CASE("a checkpoint that is ahead of the journal is an error, and no result") {
  Data data;
  TemporaryFolder folder;
  fr::SearchSettings settings = settings_of(folder);
  settings.finalists.count = 0;
  fr::SuccessiveHalving<> const schedule{.trials = 3, .least = 9};
  fr::SearchOutcome const whole = fr::search(space(), job_of(data), settings, schedule);
  // The journal as it was before the winner's first result.
  std::string const text = text_of(folder / "journal.log");
  std::string const mark =
      "\"trial_id\":" + std::to_string(*whole.winner) + ",\"user_attr\":{\"frugal:rung 0";
  std::size_t const line = text.rfind('\n', text.find(mark)) + 1;
  std::filesystem::resize_file(folder / "journal.log", line);
  fr::SearchOutcome const again = fr::search(space(), job_of(data), settings, schedule);
  fr::SearchTrial const& trial = again.history.trials[*whole.winner];
  CHECK(trial.state == fr::TrialState::failed);
  CHECK(has(trial.outcome, "is at step 27, and the rung ends at 9"));
}

/// Counts its calls, over all trials.
struct Counted {
  int* calls = nullptr;
  template <class Module>
  fr::Loss operator()(Module& module, fr::Batch const& batch) const {
    ++*calls;
    return fr::CrossEntropy{}(module, batch);
  }
};

TEST_CASE("AutoBatch searches once for an architecture") {
  Data data;
  TemporaryFolder folder;
  int calls = 0;
  auto const only = fr::SearchSpace{fr::Axis<Adam>{}, fr::vary<&Shape::width>(fr::Int{4, 8, 4})};
  fr::SearchJob const job{[](Shape const& shape) { return Net(shape); },
                          Counted{&calls},
                          data.train,
                          data.valid,
                          fr::Checkpoint<fr::Every<5>>{},
                          fr::Accumulate<fr::Auto>{},
                          fr::AutoBatch{.limit = 1 << 20}};
  fr::SearchSettings settings = settings_of(folder);
  settings.settings.steps = 3;
  settings.finalists.count = 0;
  settings.objectives = {{.name = "calls"}};
  int before = 0;
  std::vector<int> of_trial;
  settings.measures["calls"] = [&](torch::nn::Module&) {
    of_trial.push_back(calls - before);
    before = calls;
    return 1.0;
  };
  fr::SearchOutcome const found = fr::search(only, job, settings, fr::RandomSearch{.trials = 6});
  REQUIRE(of_trial.size() == 6);
  int most = 0, least = of_trial[0];
  for (int const each : of_trial) most = std::max(most, each), least = std::min(least, each);
  CHECK(most > least);
  // Two architectures, and each is searched for in its first trial alone.
  CHECK(std::ranges::count(of_trial, most) == 2);
  CHECK(std::ranges::count(of_trial, least) == 4);
  CHECK(entries(folder / "micro_batches") == 2);
}

TEST_CASE("a lack of memory, a NaN and errors are results with their reasons") {
  Data data;
  TemporaryFolder folder;
  fr::SearchOutcome const found =
      fr::search(space(), job_of(data, {}, {.strict = true}), settings_of(folder),
                 fr::SuccessiveHalving<>{.trials = 24, .least = 3});
  std::size_t memory = 0, nan = 0, error = 0;
  for (fr::SearchTrial const& each : found.history.trials) {
    int const width = static_cast<int>(*each.candidate.values[2]);
    CAPTURE(width);
    CHECK((each.state == fr::TrialState::failed) == (width != 4));
    if (width == 8) memory += has(each.outcome, "out of memory") ? 1U : 0U;
    if (width == 2) nan += has(each.outcome, "the weights are not finite") ? 1U : 0U;
    if (width == 6) {
      error += has(each.outcome, "a width of 6 is not supported") ? 1U : 0U;
      CHECK(each.failures == 3);
    }
  }
  CHECK(memory > 0);
  CHECK(nan > 0);
  CHECK(error > 0);
  CHECK(*found.best().candidate.values[2] == 4);
}

TEST_CASE("a search without any result says what its trials have ended with") {
  Data data;
  TemporaryFolder folder;
  auto const only = fr::SearchSpace{fr::Axis<Adam>{}, fr::vary<&Shape::width>(fr::Int{2, 2})};
  std::string const text = refusal([&] {
    static_cast<void>(fr::search(only, job_of(data, {}, {.strict = true}), settings_of(folder),
                                 fr::RandomSearch{.trials = 3}));
  });
  CHECK(has(text, "none of the 3 trials of the search has a result"));
  CHECK(has(text, "3 ended with"));
}

TEST_CASE("several objectives have a Pareto front") {
  Data data;
  TemporaryFolder folder;
  fr::SearchSettings settings = settings_of(folder);
  settings.settings.steps = 9;
  settings.objectives = {
      {.name = "accuracy", .maximise = true}, {.name = "bytes"}, {.name = "depth"}};
  settings.measures["depth"] = [](torch::nn::Module& module) {
    return static_cast<double>(module.children().size());
  };
  fr::SearchOutcome const found =
      fr::search(space(), job_of(data), settings, fr::RandomSearch{.trials = 8});
  CHECK(!found.front.empty());
  // None of the front is better than the others, so none is the winner, and none is repeated.
  CHECK(found.history.trials.size() == 8);
  CHECK(!found.winner);
  CHECK(found.code.empty());
  CHECK(found.weights.empty());
  CHECK(has(refusal([&] { static_cast<void>(found.best()); }),
            "the search has 3 objectives, and no rule that names a winner"));
  std::ostringstream table;
  table << found;
  CHECK(has(table.str(), "No rule names a winner (SearchSettings::winner_by)"));
  for (std::size_t const each : found.front) {
    CHECK(found.value(found.history.trials[each], 0) <= 1);
    CHECK(found.value(found.history.trials[each], 1) > 100);
    CHECK(found.value(found.history.trials[each], 2) == 4);
  }
}

TEST_CASE("explain prints rungs and costs, trains nothing and writes nothing") {
  Data data;
  TemporaryFolder folder;
  fr::SearchSettings settings = settings_of(folder);
  settings.settings.run_dir = folder / "search";
  std::ostringstream out;
  auto const plan = fr::explain(space(), job_of(data), settings, out,
                                fr::SuccessiveHalving<>{.trials = 9, .least = 3});
  CHECK(plan.worst == 9 * 3 + 3 * 6 + 18 + 2 * 27);
  CHECK(has(out.str(), "[9@3 3@9 1@27]"));
  CHECK(has(out.str(), "cost in the worst case, if no trial fails: 117 steps, 48.1%"));
  CHECK(has(out.str(), "then 1 finalist with 2 more seeds each"));
  CHECK(!std::filesystem::exists(folder / "search"));
  // A budget of that cost is enough, and one less is not.
  settings.budget.steps = 117;
  static_cast<void>(fr::explain(space(), job_of(data), settings, out,
                                fr::SuccessiveHalving<>{.trials = 9, .least = 3}));
  settings.budget.steps = 116;
  CHECK(has(refusal([&] {
              static_cast<void>(fr::explain(space(), job_of(data), settings, out,
                                            fr::SuccessiveHalving<>{.trials = 9, .least = 3}));
            }),
            "the budget is 116 steps, of which the finalists' repeats take 54"));
}

TEST_CASE("illegal recipes are dropped with their sentences, and their settings with them") {
  Data data;
  TemporaryFolder folder;
  using Twice = fr::Recipe<Adam, fr::Optimize<fr::SGD>>;
  auto const all = fr::SearchSpace{
      fr::Axis<Adam, Twice>{}, fr::vary<&fr::Optimize<fr::AdamW>::lr>(fr::LogUniform{1e-3, 1e-1})};
  fr::SearchSettings settings = settings_of(folder);
  settings.finalists.count = 0;
  fr::SearchOutcome const found =
      fr::search(all, job_of(data), settings, fr::GridSearch{.points = 2});
  REQUIRE(found.dropped.size() == 1);
  CHECK(has(found.dropped[0].second, "frugal: "));
  CHECK(found.history.trials.size() == 2);
  CHECK(*found.history.trials[0].candidate.values[0] == doctest::Approx(1e-3));
  CHECK(*found.history.trials[1].candidate.values[0] == doctest::Approx(1e-1));
  CHECK(has(found.code, "Recipe<Optimize<AdamW>, Schedule<Cosine>>"));
  CHECK(has(found.code, ".lr = 0."));

  auto const none = fr::SearchSpace{
      fr::Axis<Adam>{}, fr::vary<&fr::Optimize<fr::SGD>::lr>(fr::LogUniform{1e-3, 1e-1})};
  CHECK(has(refusal([&] {
              static_cast<void>(
                  fr::search(none, job_of(data), settings, fr::RandomSearch{.trials = 2}));
            }),
            "no recipe has the setting 'lr'"));
}

TEST_CASE("settings that make no search are one clear error each") {
  Data data;
  TemporaryFolder folder;
  auto const job = job_of(data);
  auto const refused = [&](fr::SearchSettings const& settings, auto const&... parts) {
    return refusal([&] { static_cast<void>(fr::search(space(), job, settings, parts...)); });
  };
  fr::SuccessiveHalving<> const schedule{.trials = 9, .least = 3};
  fr::SearchSettings settings = settings_of(folder);
  settings.objectives = {{.name = "f1", .maximise = true}};
  CHECK(has(refused(settings, schedule), "nothing measures the objective 'f1'"));
  settings = settings_of(folder);
  settings.settings.run_dir.clear();
  CHECK(has(refused(settings, schedule), "the search has no folder"));
  settings = settings_of(folder);
  settings.objectives = {{.name = "accuracy"}};
  CHECK(has(refused(settings, schedule), "the objective 'accuracy' is minimised"));
  settings.objectives = {{.name = "loss", .maximise = true}};
  CHECK(has(refused(settings, schedule), "the objective 'loss' is maximised"));
  settings.objectives = {{.name = "loss"}, {.name = "bytes"}};
  settings.winner_by = "accuracy";
  CHECK(has(refused(settings, schedule), "the winner is chosen by 'accuracy'"));
  settings = settings_of(folder);
  settings.budget.steps = 62;
  CHECK(has(refused(settings, schedule), "takes 63 steps"));
  settings.budget.steps = 54;
  CHECK(has(refused(settings, fr::SuccessiveHalving<>{.least = 3}),
            "the finalists' repeats alone take 54"));
  settings.finalists.count = 0;
  settings.budget.steps = 40;
  CHECK(has(refused(settings, fr::Asha<>{.least = 3}), "no trial can come to its end"));
  settings.finalists.count = 3;
  settings.budget.steps = 20;
  CHECK(has(refused(settings, fr::SuccessiveHalving<>{.least = 3}), "takes 27 steps"));
  settings.budget = {.samples = 100000};
  CHECK(has(refused(settings, schedule), "the budget is in samples, and the rungs are in steps"));
  settings.budget = {.dollars = 1};
  CHECK(has(refused(settings, schedule), "there is no price"));
  settings = settings_of(folder);
  CHECK(has(refused(settings, fr::RandomSearch{.trials = 2, .unit = fr::RungUnit::samples}),
            "Set Settings::epochs and not steps"));
  CHECK(has(refused(settings, fr::RandomSearch{.trials = 2, .unit = fr::RungUnit::seconds}),
            "Set SearchSettings::horizon"));
  settings.horizon = 90;
  settings.budget.hours = 1.0 / 3600;
  CHECK(has(refused(settings, fr::RandomSearch{.trials = 2, .unit = fr::RungUnit::seconds}),
            "the first rung of one trial takes 90"));
  settings = settings_of(folder);
  settings.objectives = {{.name = "loss"}, {.name = "bytes"}};
  CHECK(has(refused(settings, fr::Asha<>{}, fr::Nsga2{}), "the sampler draws in generations"));
}

TEST_CASE("a journal of another search is refused, and a torn last line is removed") {
  Data data;
  TemporaryFolder folder;
  auto const job = job_of(data);
  fr::SearchSettings settings = settings_of(folder);
  settings.settings.steps = 6;
  settings.finalists.count = 0;
  fr::SearchOutcome const first = fr::search(space(), job, settings, fr::RandomSearch{.trials = 2});
  std::string const more = refusal([&] {
    static_cast<void>(fr::search(space(), job, settings, fr::RandomSearch{.trials = 3}));
  });
  CHECK(has(more, "the journal is that of another search"));
  CHECK(has(more, "RandomSearch of 2 trials"));
  settings.settings.seed = 6;
  CHECK(has(refusal([&] {
              static_cast<void>(fr::search(space(), job, settings, fr::RandomSearch{.trials = 2}));
            }),
            "it has the seed '5', and the search has '6'"));
  settings.settings.seed = 5;

  // The last line is the state of trial 1: it follows from the result.
  std::string text = text_of(folder / "journal.log");
  std::filesystem::resize_file(folder / "journal.log", text.size() - 20);
  fr::SearchOutcome const again = fr::search(space(), job, settings, fr::RandomSearch{.trials = 2});
  CHECK(again.history.trials[1].state == fr::TrialState::complete);
  REQUIRE(again.warnings.size() == 1);
  CHECK(has(again.warnings[0], "unfinished line"));
  CHECK(again.winner == first.winner);

  std::string damaged = text_of(folder / "journal.log");
  damaged.replace(damaged.find("\"op_code\":4"), 11, "\"op_code\":x");
  std::ofstream(folder / "journal.log") << damaged;
  std::string const fault = refusal([&] {
    static_cast<void>(fr::search(space(), job, settings, fr::RandomSearch{.trials = 2}));
  });
  CHECK(has(fault, "journal.log, line 4"));
}

/// One worker after the other in a folder, with something that differs.
struct Worker {
  Data data{};
  Odd odd{};
  Make make{};
  fr::SearchSettings settings{};

  explicit Worker(TemporaryFolder const& folder) : settings(settings_of(folder)) {
    settings.settings.steps = 6;
    settings.finalists.count = 0;
  }
  std::string refused_by(fr::RandomSearch const& schedule = {.trials = 2}) {
    return refusal([&] {
      static_cast<void>(fr::search(space(), job_of(data, odd, make), settings, schedule));
    });
  }
};

TEST_CASE("a worker with another job is refused with both values, and the search goes on") {
  TemporaryFolder folder;
  Worker first(folder);
  CHECK(first.refused_by() == "nothing was thrown");
  std::string const journal = text_of(folder / "journal.log");
  Worker other(folder);
  SUBCASE("another copy of the data") {
    at::Tensor moved = samples(64).data.clone();
    moved[0][0] += 1;
    other.data.train = fr::TensorDataset(moved, samples(64).target, {.batch = 8});
    std::string const text = other.refused_by();
    CHECK(has(text, "data 'data' is [64, 6] Float, hash "));
    CHECK(text.find(" there and [64, 6] Float, hash ") != std::string::npos);
  }
  SUBCASE("another order") {
    other.data.train =
        fr::TensorDataset(samples(64).data, samples(64).target, {.batch = 8, .shuffle = false});
    CHECK(has(other.refused_by(), "data 'shuffle' is true there and false here"));
  }
  SUBCASE("other batches") {
    other.data.train = fr::TensorDataset(samples(64).data, samples(64).target, {.batch = 16});
    CHECK(has(other.refused_by(), "batches"));
  }
  SUBCASE("other validation data") {
    other.data.valid =
        fr::TensorDataset(samples(32, 96).data, samples(32, 96).target, {.batch = 16});
    CHECK(has(other.refused_by(), "data 'validation' is "));
  }
  SUBCASE("a member of the objective") {
    other.odd.smoothing = 0.1;
    CHECK(has(other.refused_by(), "Odd \"plain\" there and "));
  }
  SUBCASE("the module") {
    other.make.wide = true;
    CHECK(has(other.refused_by(), "the module is 9 tensors, "));
  }
  CHECK(text_of(folder / "journal.log") == journal);
  CHECK(first.refused_by() == "nothing was thrown");
}

TEST_CASE(
    "shared policies and members that are not varied are part of the job, with their values") {
  Data data;
  TemporaryFolder folder;
  auto const search = [&](fr::ClipNorm<> clip, double smoothing) {
    fr::SearchJob const job{[](Shape const& shape) { return Net(shape); },
                            fr::CrossEntropy{.label_smoothing = smoothing},
                            data.train,
                            data.valid,
                            Validates{},
                            fr::Checkpoint<fr::Every<5>>{},
                            clip};
    auto const only = fr::SearchSpace{fr::Axis<Adam>{}, fr::vary<&Shape::width>(fr::Int{4, 8, 4})};
    fr::SearchSettings settings = settings_of(folder);
    settings.settings.steps = 3;
    settings.finalists.count = 0;
    return refusal(
        [&] { static_cast<void>(fr::search(only, job, settings, fr::RandomSearch{.trials = 1})); });
  };
  CHECK(search({}, 0) == "nothing was thrown");
  CHECK(has(search({.max_norm = 0.5}, 0),
            "shared policy 3 is ClipNorm<1.0> {1} there and ClipNorm<1.0> {0.5} here"));
  CHECK(has(search({}, 0.25), "the objective is CrossEntropy {0, "));
  CHECK(search({}, 0) == "nothing was thrown");
}

TEST_CASE("a trial's checkpoint that is of another candidate ends the worker, and not the trial") {
  Data data;
  TemporaryFolder folder;
  fr::SearchSettings settings = settings_of(folder);
  settings.settings.steps = 6;
  settings.finalists.count = 0;
  settings.settings.seed = 8;
  static_cast<void>(fr::search(space(), job_of(data), settings, fr::RandomSearch{.trials = 1}));
  // The journal is lost, and another one draws another candidate for the same folder.
  std::filesystem::remove(folder / "journal.log");
  settings.settings.seed = 5;
  auto const search = [&] {
    return refusal([&] {
      static_cast<void>(fr::search(space(), job_of(data), settings, fr::RandomSearch{.trials = 1}));
    });
  };
  for (int start = 0; start < 4; ++start) {
    CHECK(has(search(), "the folder of a trial has the checkpoints of another candidate"));
  }
  std::filesystem::remove(folder / "trials/0000/candidate");
  CHECK(has(search(), "it has no file that names its candidate"));
  // No trial was failed meanwhile.
  std::filesystem::remove_all(folder / "trials/0000/checkpoints");
  fr::SearchOutcome const found =
      fr::search(space(), job_of(data), settings, fr::RandomSearch{.trials = 1});
  CHECK(found.history.trials[0].state == fr::TrialState::complete);
  CHECK(found.history.trials[0].failures == 0);
}

TEST_CASE("a checkpoint that the trial's own run refuses ends the worker, and not the trial") {
  Data data;
  TemporaryFolder folder;
  fr::SearchSettings settings = settings_of(folder);
  settings.finalists.count = 0;
  auto const only = fr::SearchSpace{fr::Axis<Adam>{}, fr::vary<&Shape::width>(fr::Int{4, 4})};
  auto const search = [&](bool wide, int signal_at) {
    fr::SearchJob const job{[wide](Shape const& shape) {
                              // The smallest architecture cannot be made, so the journal does not know the module.
                              if (shape.width == 4 && !wide) return Net(shape);
                              return Net({.width = shape.width + 1});
                            },
                            Odd{.signal_at = signal_at}, data.train, data.valid,
                            fr::Checkpoint<fr::Every<5>>{}};
    return fr::search(only, job, settings, fr::RandomSearch{.trials = 1});
  };
  CHECK(search(false, 9).interrupted);
  // As if the module had not been comparable.
  std::string text = text_of(folder / "journal.log");
  std::size_t const begin = text.find("\"job: the module\":\"") + 19;
  text.replace(begin, text.find('"', begin) - begin, "?");
  std::ofstream(folder / "journal.log") << text;
  for (int start = 0; start < 4; ++start) {
    CHECK(has(refusal([&] { static_cast<void>(search(true, 0)); }),
              "this checkpoint belongs to another run"));
  }
  fr::SearchOutcome const found = search(false, 0);
  CHECK(found.history.trials[0].state == fr::TrialState::complete);
  CHECK(found.history.trials[0].failures == 0);
}

TEST_CASE("an objective has the direction in which policies watch it") {
  Data data;
  TemporaryFolder folder;
  fr::SearchJob const job{make_net, fr::CrossEntropy{}, data.train, data.valid,
                          fr::Checkpoint<fr::KeepBest<fr::Watch<"loss", fr::Better::higher>>>{}};
  auto const only = fr::SearchSpace{fr::Axis<Adam>{}, fr::vary<&Shape::width>(fr::Int{4, 8, 4})};
  CHECK(has(refusal([&] {
              static_cast<void>(
                  fr::search(only, job, settings_of(folder), fr::RandomSearch{.trials = 1}));
            }),
            "a policy of 'AdamW + Cosine' watches it as one that is better if larger"));
}

TEST_CASE("a setting of the objective needs a ruler that it does not change") {
  Data data;
  TemporaryFolder folder;
  auto const smooth =
      fr::SearchSpace{fr::Axis<Adam>{}, fr::vary<&Odd::smoothing>(fr::Uniform{0, 0.1})};
  fr::SearchSettings settings = settings_of(folder);
  settings.settings.steps = 3;
  settings.finalists.count = 0;
  auto const search = [&] {
    return fr::search(smooth, job_of(data), settings, fr::RandomSearch{.trials = 1});
  };
  for (char const* const name : {"loss", "train_loss"}) {
    settings.objectives = {{.name = name}};
    CHECK(has(refusal([&] { static_cast<void>(search()); }),
              "the setting 'smoothing' is a member of the objective, and trials are compared by '" +
                  std::string(name) + "'"));
  }
  settings.objectives = {{.name = "accuracy", .maximise = true}};
  CHECK(search().winner == 0);
}

TEST_CASE(
    "measures see the module that is judged: in evaluation mode, without gradients, after its "
    "weights are saved") {
  Data data;
  TemporaryFolder folder;
  fr::SearchSettings settings = settings_of(folder);
  settings.settings.steps = 3;
  settings.finalists.count = 0;
  settings.objectives = {{.name = "own"}};
  std::uint64_t saved = 0, given = 0;
  settings.measures["own"] = [&](torch::nn::Module& module) {
    CHECK(!module.is_training());
    CHECK(!at::GradMode::is_enabled());
    given = fr::hash_of_tensors(module);
    CHECK(std::filesystem::exists(folder / "trials/0000/weights"));
    module.parameters()[0].fill_(7);
    return 1.0;
  };
  fr::SearchOutcome const found =
      fr::search(space(), job_of(data), settings, fr::RandomSearch{.trials = 1});
  saved = weights_in(found.weights, found.best());
  CHECK(saved == given);
}

TEST_CASE("warnings of trials come to the table, and the caller's generator is as it was") {
  Data data;
  TemporaryFolder folder;
  using Warm = fr::Recipe<fr::Optimize<fr::AdamW>, fr::Schedule<fr::Warmup<500>, fr::Cosine>>;
  auto const only = fr::SearchSpace{fr::Axis<Warm>{}, fr::vary<&Shape::width>(fr::Int{4, 8, 4})};
  fr::SearchSettings settings = settings_of(folder);
  settings.settings.steps = 3;
  settings.finalists.count = 0;
  torch::manual_seed(3);
  at::Tensor const expected = torch::rand({4});
  torch::manual_seed(3);
  auto const search = [&] {
    return fr::search(only, job_of(data), settings, fr::RandomSearch{.trials = 3});
  };
  fr::SearchOutcome const found = search();
  CHECK(at::equal(torch::rand({4}), expected));
  REQUIRE(found.warnings.size() == 1);
  CHECK(has(found.warnings[0], "trial 0 and 2 others: Schedule: "));
  // A later start has them from the journal.
  CHECK(search().warnings == found.warnings);
}

TEST_CASE("the time of a search is a budget, and a larger one continues it") {
  Data data;
  TemporaryFolder folder;
  fr::SearchSettings settings = settings_of(folder);
  settings.budget.hours = 1e-9;
  fr::SearchOutcome const first =
      fr::search(space(), job_of(data), settings, fr::SuccessiveHalving<>{.trials = 9, .least = 3});
  CHECK(first.stopped_by == "budget");
  CHECK(!first.interrupted);
  CHECK(!first.winner);
  settings.budget.hours = 1;
  fr::SearchOutcome const found =
      fr::search(space(), job_of(data), settings, fr::SuccessiveHalving<>{.trials = 9, .least = 3});
  CHECK(found.stopped_by.empty());
  check_bits(folder, found, 3);
}

}  // namespace frugal_test::search_search
