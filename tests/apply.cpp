// SPDX-License-Identifier: Apache-2.0
// needs: apply
#include <frugal/apply.hpp>

#include <doctest/doctest.h>

#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/frugal.hpp>
#include <frugal/policy/optimize/partition.hpp>
#include <frugal/report.hpp>

#include "support/files.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

namespace frugal_test::apply {

using namespace frugal;

struct StopBelow {
  struct kind : optional_kind {
    static constexpr std::string_view name = "test.StopBelow";
  };
  using listens = list<on::fit_end>;
  struct State {
    using transient = void;
    explicit State(StopBelow const&) {}
    void on_fit_end(FitEnd&) {}
  };

  double loss = 0.1;
  int keep = 3;  // not in its list

  void each_option(auto&& visit) { visit("loss", loss, "the run ends below this loss"); }
};

/// All of its types at once: each trainer takes seconds to compile.
auto make() {
  return Trainer{torch::nn::Linear(4, 3),
                 CrossEntropy{},
                 Settings{.epochs = 2},
                 Optimize<AdamW>{.lr = 2e-3},
                 Accumulate<>{},
                 Schedule<Warmup<10>, Cosine>{},
                 ClipNorm<1.0>{},
                 Validate<Every<5>, Accuracy, TopK<>, TopK<>>{.metrics = {{}, {.k = 1}, {.k = 2}}},
                 Checkpoint<KeepBest<>, KeepBest<WatchAccuracy, 2>>{},
                 Average<Ema<0.9>>{},
                 EarlyStop<Patience<3>>{},
                 Log<>{},
                 Csv<>{},
                 Csv<Every<7>>{},
                 StopAfter<Hours<2>>{},
                 StopBelow{}};
}
using Trained = decltype(make());

void set(Trained& trainer, std::vector<char const*> arguments) {
  arguments.insert(arguments.begin(), "train");
  frugal::apply(trainer, static_cast<int>(arguments.size()), arguments.data());
}
/// The error of arguments that are refused.
std::string refused(std::vector<char const*> const& arguments) {
  Trained trainer = make();
  try {
    set(trainer, arguments);
  } catch (SettingsError const& error) {
    return error.what();
  }
  return "nothing was refused";
}
bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the command line sets members by their names") {
  Trained trainer = make();
  set(trainer, {"--epochs",
                "7",
                "--run_dir=runs/a",
                "--device",
                "cpu",
                "--optimize.lr",
                "1e-3",
                "--accumulate.micro_batches",
                "4",
                "--schedule.warmup.steps",
                "50",
                "--schedule.cosine.floor",
                "0.1",
                "--clip_norm.max_norm",
                "inf",
                "--validate.every",
                "9",
                "--validate.top_k.k",
                "3",
                "--validate.top_k_2.k",
                "4",
                "--checkpoint.resume",
                "Weights",
                "--checkpoint.keep_best",
                "4,5",
                "--average.rule.decay",
                "0.5",
                "--early_stop.restore_best",
                "true",
                "--csv_2.every",
                "8",
                "--stop_after.limit",
                "90.5",
                "--stop_below.loss",
                "0.25",
                "--objective.label_smoothing",
                "0.125"});
  CHECK(trainer.settings().epochs == 7);
  CHECK(trainer.settings().run_dir == "runs/a");
  CHECK(trainer.settings().device.is_cpu());
  CHECK(trainer.optimizer().lr == 1e-3);
  CHECK(trainer.policy<kinds::accumulate>().micro_batches == 4);
  CHECK(trainer.policy<kinds::schedule>().warmup().steps == 50);
  CHECK(trainer.policy<kinds::schedule>().cosine().floor == 0.1);
  CHECK(std::isinf(trainer.policy<kinds::clip>().max_norm));
  CHECK(trainer.policy<kinds::validate>().every.count() == 9);
  CHECK(std::get<1>(trainer.validate().metrics).k == 3);
  CHECK(std::get<2>(trainer.validate().metrics).k == 4);
  CHECK(trainer.policy<kinds::checkpoint>().resume == Resume::Weights);
  CHECK(trainer.policy<kinds::checkpoint>().keep_best == std::array<std::size_t, 2>{4, 5});
  CHECK(trainer.policy<kinds::average>().rule.decay == 0.5);
  CHECK(trainer.policy<kinds::early_stop>().restore_best);
  CHECK(trainer.policy<kinds::csv, 0>().every.count() == 100);
  CHECK(trainer.policy<kinds::csv, 1>().every.count() == 8);
  CHECK(trainer.policy<kinds::stop_after>().limit.count() == 90.5);
  CHECK(trainer.policy<StopBelow::kind>().loss == 0.25);
  CHECK(trainer.objective().label_smoothing == 0.125);

  auto const& given = trainer.settings().options;
  CHECK(given.size() == 19);
  CHECK(given.at("optimize.lr") == "0.001");
  CHECK(given.at("checkpoint.resume") == "Weights");
  CHECK(given.at("checkpoint.keep_best") == "4,5");
}

TEST_CASE("both sides of a Partition have options of their own") {
  Trainer trainer{torch::nn::Linear(4, 3), CrossEntropy{}, Settings{},
                  Optimize<Partition<SGD, AdamW>>{}};
  std::vector<char const*> const arguments{
      "train", "--optimize.select",  "weight,b*", "--optimize.first.momentum",
      "0.5",   "--optimize.rest.lr", "0.25"};
  frugal::apply(trainer, static_cast<int>(arguments.size()), arguments.data());
  CHECK(trainer.optimizer().select == std::vector<std::string>{"weight", "b*"});
  CHECK(trainer.optimizer().first.momentum == 0.5);
  CHECK(trainer.optimizer().rest.lr == 0.25);
  for (Option const& each : options_of(trainer)) {
    if (each.name == "optimize.first.momentum") CHECK(has(each.help, "share of the last update"));
  }
}

TEST_CASE("every option says what it is, and takes its own value") {
  Trained trainer = make();
  std::vector<Option> const all = options_of(trainer);
  CHECK(all.size() > 45);
  for (Option const& each : all) {
    CAPTURE(each.name);
    CHECK_FALSE(each.help.empty());
    CHECK_FALSE(each.type.empty());
    CHECK(std::ranges::count(all, each.name, &Option::name) == 1);
    if (each.before.empty() || each.before == "that of the module") continue;
    each.set(each.before);
    CHECK(trainer.settings().options.at(each.name) == each.before);
  }
  // Numbers of a type are constants, and what fit sets is no option.
  auto const none = [&](std::string const& name) {
    return std::ranges::count(all, name, &Option::name) == 0;
  };
  CHECK(none("stop_below.keep"));
  CHECK(none("average.averaged"));
  CHECK(none("options"));
}

TEST_CASE("what does not fit is refused, with the nearest name") {
  CHECK(has(refused({"--optimize.lrr", "1"}), "the nearest is 'optimize.lr'"));
  CHECK(has(refused({"--lr=1"}), "the nearest is 'optimize.lr'"));
  CHECK(has(refused({"--warmup.steps", "1"}), "the nearest is 'schedule.warmup.steps'"));
  CHECK(has(refused({"--zzzzzzzz", "1"}), "no option has a name like it"));
  CHECK(has(refused({"seven"}), "options begin with --"));
  CHECK(has(refused({"--optimize.lr", "fast"}), "'fast' is no value of optimize.lr"));
  CHECK(has(refused({"--config", "/missing.toml"}), "Give the path of a file"));
  CHECK(has(refused({"--optimize.lr", "nan"}), "it is a number"));
  CHECK(has(refused({"--optimize.lr", "1e-3x"}), "it is a number"));
  CHECK(has(refused({"--epochs", "-1"}), "a whole number from 0 on"));
  CHECK(has(refused({"--epochs", "1.5"}), "a whole number from 0 on"));
  CHECK(has(refused({"--accumulate.micro_batches", "99999999999"}), "too large"));
  CHECK(has(refused({"--validate.every", "0"}), "counts at least one"));
  CHECK(has(refused({"--early_stop.restore_best", "maybe"}), "it is true or false"));
  CHECK(has(refused({"--checkpoint.resume", "Later"}), "one of Exact|Weights|Never"));
  CHECK(has(refused({"--checkpoint.keep_best", "1"}), "it has 2 values"));
  CHECK(has(refused({"--device", "gpu"}), "gpu"));
  CHECK(has(refused({"--optimize.lr"}), "--optimize.lr"));
  CHECK(has(refused({"--optimize.lr", "+-1"}), "it is a number"));
  CHECK(has(refused({"--optimize.lr", "1e-400"}), "too small"));
  CHECK(has(refused({"--optimize.lr", "1", "--optimize.lr", "2"}), "--optimize.lr"));
  CHECK(has(refused({"--config", ""}), "--config"));
  CHECK(has(refused({"--device", "cuda:256"}), "cuda:256"));
}

TEST_CASE("a file sets what the command line does not") {
  support::TemporaryFolder const folder;
  auto const write = [&](std::string const& name, std::string const& text) {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  };
  std::string const toml = write("run.toml",
                                 "epochs = 5  # of the data\n"
                                 "name = \"a run\"\n"
                                 "[optimize]\nlr = 1e-4\nbeta1 = 0.8\n"
                                 "[schedule.warmup]\nsteps = 30\n"
                                 "[checkpoint]\nkeep_best = [3, 4]\n");
  std::string const json = write("run.json",
                                 R"({"epochs": 5, "name": "a run", "steps": null,
                                     "optimize": {"lr": 1e-4, "beta1": 0.8},
                                     "schedule": {"warmup": {"steps": 30}},
                                     "checkpoint": {"keep_best": [3, 4]}})");
  auto const marked = [&](std::string const& name, std::string const& file) {
    std::ifstream from(file);
    return write(name, "\xEF\xBB\xBF" + std::string{std::istreambuf_iterator<char>(from), {}});
  };
  for (std::string const& file :
       {toml, json, marked("marked.toml", toml), marked("marked.json", json)}) {
    CAPTURE(file);
    Trained trainer = make();
    set(trainer, {"--config", file.c_str(), "--optimize.lr", "0.5"});
    CHECK(trainer.settings().epochs == 5);
    CHECK(trainer.settings().name == "a run");
    CHECK(trainer.optimizer().lr == 0.5);
    CHECK(trainer.optimizer().beta1 == 0.8);
    CHECK(trainer.policy<kinds::schedule>().warmup().steps == 30);
    CHECK(trainer.policy<kinds::checkpoint>().keep_best == std::array<std::size_t, 2>{3, 4});
  }
  auto const file_refused = [&](std::string const& text) {
    return refused({"--config", write("bad", text).c_str()});
  };
  CHECK(has(file_refused("[optimise]\nlr = 1\n"), "'optimise.lr'"));
  CHECK(has(file_refused("[optimise]\nlr = 1\n"), "the nearest is 'optimize.lr'"));
  CHECK(has(file_refused("{\"optimize\": {\"lr\": "), "cannot be read"));
  CHECK(has(file_refused("{\"optimize\": {\"lr\": [[1]]}}"), "cannot be read"));
  CHECK(has(file_refused("{\"epochs\": 1, \"epochs\": 2}"), "is there twice"));
  CHECK(has(file_refused("seed = 1\nepochs 5\n"), "line 2: Error while parsing key-value pair"));
  CHECK(has(file_refused("epochs = 1\nepochs = 2\n"), "line 2: "));
  CHECK(has(file_refused("\"optimize.lr\" = 1\n[optimize]\nlr = 2\n"), "is there twice"));
  CHECK(has(file_refused("epochs = 3.0\n"), "it is a whole number"));
  CHECK(has(file_refused("name = 2026-11-30\n"), "line 1: a value is a text"));
  CHECK(has(file_refused("[[optimize]]\nlr = 1\n"), "a value is a text"));
  CHECK(has(file_refused("name = a run\n"), "line 1: "));
  CHECK(has(file_refused("name = [\"a\", \"b\"]\n"), "it has one value, and no array"));
  CHECK(has(file_refused("[optimise]\n"), "there is no option 'optimise'"));
  CHECK(has(file_refused("{\"optimise\": {}}"), "there is no option 'optimise'"));
  CHECK(has(file_refused("[1]\n"), "there is no option '1'"));
  CHECK(has(file_refused("{\"run_dir\": null}"), "it always has a value"));
  CHECK(has(file_refused("{\"checkpoint\": {\"start_fresh\": [\"a,b\"]}}"),
            "commas separate its values"));
  CHECK(has(file_refused("[optimize]\nlr = \"fast\"\n"), "'fast' is no value"));
  CHECK(has(refused({"--config", (folder / "none").c_str()}), "none"));
}

TEST_CASE("what was set is in the report, the log and the checkpoint") {
  support::TemporaryFolder const folder;
  at::Tensor const rows = torch::randn({40, 4});
  at::Tensor const labels = torch::randint(0, 3, {40});
  auto const run = [&](std::vector<char const*> const& arguments, double decay = 0.01) {
    Trained trainer = make();
    trainer.settings().run_dir = folder.path();
    trainer.optimizer().weight_decay = decay;
    if (decay != 0.01) {
      trainer.policy<kinds::average>().rule.decay = 0.8;
      trainer.schedule().warmup().steps = 4;
      trainer.schedule().cosine().floor = 0.25;
    }
    set(trainer, arguments);
    TensorDataset train(rows, labels, {.batch = 4});
    TensorDataset valid(rows, labels, {.batch = 8});
    return trainer.fit(train, valid);
  };
  Report const first = run({"--optimize.lr", "1e-3", "--log.every", "5"});
  CHECK(first.options.at("optimize.lr") == "0.001");
  std::ifstream file(folder / "metrics.jsonl");
  std::string const log{std::istreambuf_iterator<char>(file), {}};
  CHECK(has(log, R"("option.optimize.lr":"0.001")"));

  Report const second = run({"--optimize.lr", "2e-3", "--log.every", "5", "--epochs", "3"}, 0.5);
  auto const warned = std::ranges::find_if(second.warnings, [](std::string const& text) {
    return text.starts_with("the checkpoint was saved with other settings");
  });
  REQUIRE(warned != second.warnings.end());
  CHECK(has(*warned, "optimize.lr was 0.001 and is 0.002"));
  CHECK(has(*warned, "learning rate was 0.001 and is 0.002"));
  CHECK(has(*warned, "epochs was not set from outside and is 3"));
  // Set by the program itself.
  CHECK(has(*warned, "the optimizer's weight_decay, group 0 was 0.01 and is 0.5"));
  CHECK(has(*warned, "Average::rule.decay was 0.9 and is 0.8"));
  CHECK(has(*warned, "Schedule, part 1, warmup: steps was 10 and is 4"));
  CHECK(has(*warned, "Schedule, part 2, cosine: floor was 0 and is 0.25"));
  CHECK_FALSE(has(*warned, "cosine: steps"));
  CHECK_FALSE(has(*warned, "Average::rule.every"));
  CHECK_FALSE(has(*warned, "beta1"));
  CHECK_FALSE(has(*warned, "log.every"));
}

TEST_CASE("a program adds the options to its own") {
  Trained trainer = make();
  int width = 1;
  CLI::App app;
  app.add_option("--width", width);
  add_options(app, trainer);
  app.parse("--width 3 --optimize.lr 0.5");
  CHECK(width == 3);
  CHECK(trainer.optimizer().lr == 0.5);
  std::string const help = app.help();
  CHECK(has(help, "--optimize.lr"));
  CHECK(has(help, "learning rate"));
  CHECK(has(help, "0.002"));
}

TEST_CASE("a file may have the program's own options, whatever they are") {
  support::TemporaryFolder const folder;
  std::string const file = (folder / "run.toml").string();
  std::ofstream(file) << "layers = [1, 2]\nfast = true\nepochs = 4\n";
  Trained trainer = make();
  std::vector<int> layers;
  bool fast = false;
  CLI::App app;
  app.add_option("--layers", layers);
  app.add_flag("--fast", fast);
  add_options(app, trainer);
  app.parse("--config " + file);
  CHECK(layers == std::vector<int>{1, 2});
  CHECK(fast);
  CHECK(trainer.settings().epochs == 4);
}

TEST_CASE("the second curve of a name has a number") {
  Trainer trainer{torch::nn::Linear(1, 1), CrossEntropy{},
                  Schedule<Constant<5>, Constant<7, 0.5>, Cosine>{}};
  for (Option const& each : options_of(trainer)) {
    if (each.name == "schedule.constant_2.steps") each.set("9");
  }
  CHECK(std::get<1>(trainer.policy<kinds::schedule>().parts).steps == 9);
}

}  // namespace frugal_test::apply
