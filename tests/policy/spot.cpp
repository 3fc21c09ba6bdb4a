// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report/find_learning_rate.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace frugal_test::policy_spot {

using namespace support;
using frugal::Every;
using frugal::Preempted;
using frugal::SigtermSave;
using Optimizer = frugal::Optimize<frugal::AdamW>;
using Saves = frugal::Checkpoint<Every<100>, frugal::Async>;
using Stays = frugal::Spot<SigtermSave>;

/// Calls back before each batch of training and of validation.
struct Witness {
  std::function<void(bool training)> each;

  frugal::Loss operator()(std::shared_ptr<Mlp>& module, frugal::Batch const& batch) const {
    each(module->is_training());
    return frugal::CrossEntropy{}(module, batch);
  }
};

struct Outcome {
  frugal::Report report;
  std::map<std::string, at::Tensor> tensors;
  int training = 0;    ///< batches
  int validation = 0;  ///< batches
  int after = 0;       ///< batches begun after the signal
};

struct Plan {
  std::filesystem::path folder{};
  int signal_at = 0;  ///< batch, counted over both kinds; 0: none
  std::int64_t samples = 43;
  std::optional<std::uint64_t> steps{};
};

/// Two epochs of 11 batches; SIGTERM before one of the batches.
template <class... Ps>
Outcome run(Plan const& plan, Ps const&... policies) {
  Outcome outcome;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
  int count = 0;
  Witness const witness{[&](bool training) {
    ++(training ? outcome.training : outcome.validation);
    if (plan.signal_at != 0 && count >= plan.signal_at) ++outcome.after;
    if (++count == plan.signal_at) ::raise(SIGTERM);
  }};
  frugal::Trainer trainer{
      module,
      witness,
      frugal::Settings{.run_dir = plan.folder, .epochs = 2, .steps = plan.steps, .seed = 7},
      Optimizer{},
      frugal::Validate<Every<5>, frugal::SanityBatches<0>>{},
      Saves{},
      Stays{},
      policies...};
  frugal::TensorDataset train(samples(plan.samples), {.batch = 4, .shuffle = true});
  frugal::TensorDataset valid(samples(15, 92), {.batch = 4});
  outcome.report = trainer.fit(train, valid);
  outcome.tensors = tensors_of(*module);
  return outcome;
}
template <class... Ps>
Outcome run(std::filesystem::path const& folder, int signal_at, Ps const&... policies) {
  return run(Plan{.folder = folder, .signal_at = signal_at}, policies...);
}

/// A run that is preempted at any batch gives the same report as an uninterrupted one.
template <class... Ps>
void reports_the_same(Plan plan, std::uint64_t steps, std::uint64_t epochs, Ps const&... policies) {
  TemporaryFolder const folder;
  plan.folder = folder / "whole";
  Outcome const whole = run(plan, policies...);
  REQUIRE(whole.report.steps == steps);
  REQUIRE(whole.report.epochs == epochs);
  for (int at = 1; at <= whole.training + whole.validation; ++at) {
    CAPTURE(at);
    plan.folder = folder / std::to_string(at);
    plan.signal_at = at;
    run(plan, policies...);
    plan.signal_at = 0;
    Outcome const second = run(plan, policies...);
    CHECK(second.report.train_loss == whole.report.train_loss);
    CHECK(second.report.steps == steps);
    CHECK(second.report.epochs == epochs);
    CHECK(second.report.validations.size() == whole.report.validations.size());
    CHECK(same_bits(second.tensors, whole.tensors));
  }
}

TEST_CASE("a validation interrupted at the step that ends the run still ends it") {
  // At step 10, in the middle of the first epoch.
  reports_the_same({}, 10, 0, frugal::EarlyStop<frugal::Patience<1>>{.min_delta = 10});
}

TEST_CASE("so does one at the last allowed step, in an epoch and at its end") {
  reports_the_same({.steps = 10}, 10, 0);
  reports_the_same({.samples = 40, .steps = 10}, 10, 1);
}

TEST_CASE("SIGTERM in training: the step is finished and saved, and the report says so") {
  TemporaryFolder const folder;
  Outcome const outcome = run(folder.path(), 3);
  CHECK(outcome.report.preempted);
  CHECK(outcome.report.exit_code() == 75);
  CHECK(outcome.report.stopped_by == "Spot");
  CHECK(outcome.report.steps == 3);
  CHECK(outcome.after == 0);
  auto const newest = frugal::RunDirectory(folder.path(), frugal::Access::read).newest_valid();
  REQUIRE(newest.checkpoint);
  CHECK(newest.checkpoint->step() == 3);
}

TEST_CASE("whenever SIGTERM comes, the resumed run ends with the bits of an undisturbed one") {
  TemporaryFolder const folder;
  Outcome const whole = run(folder / "whole", 0);
  REQUIRE_FALSE(whole.report.preempted);
  CHECK(whole.report.exit_code() == 0);
  int const batches = whole.training + whole.validation;
  for (int at = 1; at <= batches; ++at) {
    CAPTURE(at);
    auto const place = folder / std::to_string(at);
    Outcome const first = run(place, at);
    CHECK(first.report.preempted);
    CHECK(first.after == 0);
    Outcome const second = run(place, 0);
    CHECK_FALSE(second.report.preempted);
    CHECK(same_bits(second.tensors, whole.tensors));
    CHECK(second.report.steps == whole.report.steps);
    CHECK(second.report.stopped_by.empty());
    REQUIRE(second.report.validations.size() == whole.report.validations.size());
    for (std::size_t i = 0; i < whole.report.validations.size(); ++i) {
      CHECK(second.report.validations[i].step == whole.report.validations[i].step);
      CHECK(second.report.validations[i].metrics == whole.report.validations[i].metrics);
    }
    // Everything that the preempted run had done was saved.
    CHECK(first.training + second.training == whole.training);
  }
}

TEST_CASE("SIGTERM in a dry run ends the run before there is anything to save") {
  TemporaryFolder const folder;
  Outcome const outcome = run(folder.path(), 1, frugal::DryRun<2>{.out = nullptr});
  CHECK(outcome.report.preempted);
  CHECK(outcome.report.steps == 0);
  CHECK(outcome.after == 0);
  Outcome const whole = run(folder / "whole", 0, frugal::DryRun<2>{.out = nullptr});
  Outcome const second = run(folder.path(), 0, frugal::DryRun<2>{.out = nullptr});
  CHECK(same_bits(second.tensors, whole.tensors));
}

TEST_CASE("Trainer::dry_run that is preempted has failed, and says why") {
  std::ostringstream out;
  Witness const witness{[](bool) { ::raise(SIGTERM); }};
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          witness,
                          frugal::Settings{.run_dir = "unused"},
                          Optimizer{},
                          Saves{},
                          Stays{}};
  frugal::TensorDataset train(samples(12), {.batch = 4});
  CHECK_FALSE(trainer.dry_run(train, out));
  CHECK(out.str().find("Spot asks to preempt the run") != std::string::npos);
}

TEST_CASE("a second SIGTERM changes nothing") {
  TemporaryFolder const folder;
  auto const module = std::make_shared<Mlp>();
  Witness const witness{[](bool) {
    ::raise(SIGTERM);
    ::raise(SIGTERM);
  }};
  frugal::Trainer trainer{
      module,      witness, frugal::Settings{.run_dir = folder.path(), .epochs = 2},
      Optimizer{}, Saves{}, Stays{}};
  frugal::TensorDataset train(samples(12), {.batch = 4});
  for (std::uint64_t step = 1; step <= 5; ++step) CHECK(trainer.fit(train).steps == step);
}

/// Replaces the folder of checkpoints by a file.
struct Spoiler {
  using kind = support::kinds::spy;
  using listens = frugal::list<frugal::on::step>;
  std::filesystem::path folder;
  struct State {
    using transient = void;
    std::filesystem::path folder;
    explicit State(Spoiler const& settings) : folder(settings.folder) {}
    void on_step(frugal::Step&) {
      std::filesystem::rename(folder / "checkpoints", folder / "aside");
      std::ofstream(folder / "checkpoints") << "no folder";
    }
  };
};

/// The exit status of a process that is preempted in its first step; its error output is in the
/// file `stderr`. `then` is called with the report, if fit returns.
template <class Then, class... Ps>
int end_of_process(std::filesystem::path const& folder, Preempted what, Then&& then,
                   Ps const&... policies) {
  pid_t const child = ::fork();
  if (child == 0) {
    if (std::freopen((folder / "stderr").c_str(), "w", stderr) == nullptr) std::_Exit(3);
    at::set_num_threads(1);
    ::signal(SIGTERM, SIG_DFL);
    auto const module = std::make_shared<Mlp>();
    Witness const witness{[](bool) { ::raise(SIGTERM); }};
    frugal::Trainer trainer{module,
                            witness,
                            frugal::Settings{.run_dir = folder, .epochs = 2},
                            Optimizer{},
                            Stays{.on_preemption = what},
                            policies...};
    frugal::TensorDataset train(samples(12), {.batch = 4});
    frugal::Report const report = trainer.fit(train);
    then(report);
    std::_Exit(4);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}
/// The exit status if Spot ends the process.
template <class... Ps>
int end_by_spot(std::filesystem::path const& folder, Ps const&... policies) {
  return end_of_process(folder, Preempted::Exit, [](frugal::Report const&) {}, policies...);
}

TEST_CASE("by default fit returns, and one line on stderr says what main must return") {
  TemporaryFolder const folder;
  int const status = end_of_process(
      folder.path(), Preempted::Return,
      [](frugal::Report const& report) { std::_Exit(report.exit_code()); }, Saves{});
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 75);
  CHECK(text_of(folder / "stderr") ==
        "frugal: preempted at step 1; return Report::exit_code() (75) from main to be run again\n");
}

TEST_CASE("a second SIGTERM between fit's return and main's does not change the code") {
  TemporaryFolder const folder;
  int const status = end_of_process(
      folder.path(), Preempted::Return,
      [](frugal::Report const&) {
        ::raise(SIGTERM);
        std::_Exit(5);  // the signal ends the process before that
      },
      Saves{});
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 75);
}

TEST_CASE("nor does it if the run could not be saved: its code is the report's") {
  TemporaryFolder const folder;
  int const status = end_of_process(
      folder.path(), Preempted::Return, [](frugal::Report const&) { ::raise(SIGTERM); },
      Saves{.on_failure = frugal::OnFailure::Continue}, Spoiler{.folder = folder.path()});
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 74);
}

TEST_CASE("after a later fit that is not preempted, SIGTERM acts as without a fit") {
  TemporaryFolder const folder;
  int const status = end_of_process(
      folder.path(), Preempted::Return,
      [&](frugal::Report const&) {
        frugal::Trainer trainer{std::make_shared<Mlp>(),
                                frugal::CrossEntropy{},
                                frugal::Settings{.run_dir = folder / "next", .epochs = 1},
                                Optimizer{},
                                Saves{},
                                Stays{}};
        static_cast<void>(trainer.fit(frugal::TensorDataset(samples(12), {.batch = 4})));
        ::raise(SIGTERM);
      },
      Saves{});
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
}

TEST_CASE("if Spot ends the process, it does so with code 75, and the run is saved") {
  TemporaryFolder const folder;
  int const status = end_by_spot(folder.path(), Saves{});
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 75);
  CHECK(text_of(folder / "stderr")
            .find("frugal: preempted at step 1; exit code 75 asks to be run "
                  "again") != std::string::npos);
  auto const newest = frugal::RunDirectory(folder.path(), frugal::Access::read).newest_valid();
  REQUIRE(newest.checkpoint);
  CHECK(newest.checkpoint->step() == 1);
}

/// A notice that comes on request.
struct ToldNotices {
  bool const* told = nullptr;
  bool* saved = nullptr;
  struct Watch {
    explicit Watch(ToldNotices const& settings) : was_saved(settings.saved), told(settings.told) {}
    bool pending() const { return told && *told; }
    static std::string text() { return "the test"; }
    static std::string warning() { return ""; }
    void saved() { *was_saved = true; }
    bool* was_saved;
    bool const* told;
  };
};

TEST_CASE("a process whose run could not be saved does not end with the code of a saved one") {
  TemporaryFolder const folder;
  int const status = end_by_spot(folder.path(), Saves{.on_failure = frugal::OnFailure::Continue},
                                 Spoiler{.folder = folder.path()});
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 74);
  std::string const said = text_of(folder / "stderr");
  CHECK(said.find("frugal: preempted at step 1, and that is not saved: frugal: the call mkdir") !=
        std::string::npos);
  CHECK(said.find("exit code 74 is an error") != std::string::npos);
}

TEST_CASE("the cloud is not told that the machine may go when nothing could be saved") {
  TemporaryFolder const folder;
  bool told = false;
  bool acknowledged = false;
  frugal::Spot<SigtermSave, ToldNotices> const spot{
      .notices = {.told = &told, .saved = &acknowledged}};
  auto const objective = [&told](auto& module, auto const& batch) {
    told = true;  // during the first step
    return frugal::CrossEntropy{}(module, batch);
  };
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          objective,
                          frugal::Settings{.run_dir = folder.path(), .epochs = 2},
                          Optimizer{},
                          Saves{.on_failure = frugal::OnFailure::Continue},
                          spot,
                          Spoiler{.folder = folder.path()}};
  frugal::TensorDataset train(samples(12), {.batch = 4});
  frugal::Report const report = trainer.fit(train);
  CHECK(report.preempted);
  CHECK(report.steps == 1);
  CHECK(report.exit_code() == 74);
  CHECK(report.unsaved.find("mkdir") != std::string::npos);
  CHECK_FALSE(acknowledged);
}

TEST_CASE("a notice of the time before the first step preempts the run there, new or resumed") {
  TemporaryFolder const folder;
  bool told = true;
  bool acknowledged = false;
  auto const fit = [&] {
    frugal::Spot<SigtermSave, ToldNotices> const spot{
        .notices = {.told = &told, .saved = &acknowledged}};
    auto const objective = [&told](auto& module, auto const& batch) {
      told = true;
      return frugal::CrossEntropy{}(module, batch);
    };
    frugal::Trainer trainer{std::make_shared<Mlp>(),
                            objective,
                            frugal::Settings{.run_dir = folder.path(), .epochs = 2},
                            Optimizer{},
                            Saves{},
                            spot};
    return trainer.fit(frugal::TensorDataset(samples(12), {.batch = 4}));
  };
  frugal::Report report = fit();
  CHECK(report.preempted);
  CHECK(report.steps == 0);
  CHECK(report.exit_code() == 75);
  told = false;
  report = fit();  // the notice comes during the first step
  CHECK(report.steps == 1);
  report = fit();  // it is still there
  CHECK(report.preempted);
  CHECK(report.steps == 1);
  CHECK(report.preempted_by == "Spot");
  for (std::uint64_t step = 2; step <= 6; ++step) {
    told = false;
    report = fit();
    CHECK(report.steps == step);
  }
}

/// Raises SIGTERM when its state is destroyed: after Spot's, which comes later in the order, and
/// before the process ends.
struct Late {
  using kind = support::kinds::spy;
  using listens = frugal::list<frugal::on::fit_end>;
  using before = frugal::list<frugal::kinds::spot>;
  struct State {
    using transient = void;
    explicit State(Late const&) {}
    State(State const&) = delete;
    ~State() { ::raise(SIGTERM); }
    void on_fit_end(frugal::FitEnd&) {}
  };
};

TEST_CASE("a SIGTERM after the save, during destruction, does not change the code") {
  TemporaryFolder const folder;
  int const status = end_by_spot(folder.path(), Saves{}, Late{});
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 75);
}

TEST_CASE("the former handler is restored after fit") {
  struct sigaction before{};
  struct sigaction after{};
  ::sigaction(SIGTERM, nullptr, &before);
  TemporaryFolder const folder;
  run(folder.path(), 3);
  ::sigaction(SIGTERM, nullptr, &after);
  CHECK((before.sa_handler == after.sa_handler));
}

/// Stands in for a slow checkpoint.
struct SlowCheckpoint {
  using kind = frugal::kinds::checkpoint;
  using listens = frugal::list<frugal::on::step>;
  using provides = frugal::list<frugal::service::save>;
  struct State {
    using transient = void;
    explicit State(SlowCheckpoint const&) {}
    void on_step(frugal::Step&) {}
    bool save(frugal::CheckpointPhase&) { return true; }
    double save_seconds() const { return 42.5; }
  };
};

template <class Spot>
std::vector<std::string> advice_of(Spot const& spot) {
  auto const module = std::make_shared<Mlp>();
  frugal::Trainer trainer{module,      frugal::CrossEntropy{}, frugal::Settings{.epochs = 1},
                          Optimizer{}, SlowCheckpoint{},       spot};
  frugal::TensorDataset train(samples(4), {.batch = 4});
  return trainer.fit(train).warnings;
}

TEST_CASE("a save that takes longer than the grace is reported before it is needed") {
  auto const advice = advice_of(frugal::Spot<SigtermSave, frugal::Grace<30>>{});
  REQUIRE(advice.size() == 1);
  CHECK(advice[0].find("a checkpoint takes 42.5 s and the machine gives 30 s notice") == 0);
  CHECK(advice_of(frugal::Spot<SigtermSave, frugal::Grace<120>>{}).empty());
}

TEST_CASE("a notice acts like a signal") {
  TemporaryFolder const folder;
  bool told = false;
  bool saved = false;
  auto const module = std::make_shared<Mlp>();
  int count = 0;
  Witness const witness{[&](bool) { told = ++count == 2; }};
  frugal::Spot<SigtermSave, ToldNotices> spot{.notices = {.told = &told, .saved = &saved}};
  frugal::Trainer trainer{module,
                          witness,
                          frugal::Settings{.run_dir = folder.path(), .epochs = 2},
                          Optimizer{},
                          Saves{},
                          spot,
                          frugal::Log<Every<100>>{}};
  frugal::TensorDataset train(samples(12), {.batch = 4});
  frugal::Report const report = trainer.fit(train);
  CHECK(report.preempted);
  CHECK(report.steps == 2);
  CHECK(saved);
  CHECK(text_of(folder / "metrics.jsonl").find(R"("event":"preempted")") != std::string::npos);
  CHECK(text_of(folder / "metrics.jsonl").find(R"("by":"the test")") != std::string::npos);
}

TEST_CASE("only a fit and a dry run handle the signal, and both put back what was there") {
  auto const handler = [] {
    struct sigaction now{};
    ::sigaction(SIGTERM, nullptr, &now);
    return now.sa_handler;
  };
  auto const own = [](int) {};
  struct sigaction mine{};
  struct sigaction before{};
  mine.sa_handler = own;
  ::sigaction(SIGTERM, &mine, &before);
  TemporaryFolder const folder;
  std::vector<void (*)(int)> during;
  bool throws = false;
  bool preempts = false;
  Witness const witness{[&](bool) {
    during.push_back(handler());
    if (throws) throw std::runtime_error("the machine is on fire");
    if (preempts) ::raise(SIGTERM);
  }};
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          witness,
                          frugal::Settings{.run_dir = folder.path(), .epochs = 1},
                          Optimizer{},
                          Saves{},
                          Stays{}};
  frugal::TensorDataset data(samples(8), {.batch = 4});
  static_cast<void>(trainer.evaluate(data));
  trainer.predict(data, [&](at::Tensor const&, auto const&) { during.push_back(handler()); });
  static_cast<void>(frugal::find_learning_rate(trainer, data, {.steps = 10}));
  REQUIRE(during.size() >= 14);
  for (auto const each : during) CHECK((each == +own));

  // A fit that ends, that throws, and a dry run.
  during.clear();
  static_cast<void>(trainer.fit(data));
  CHECK((during.at(0) != +own));
  CHECK((handler() == +own));
  throws = true;
  trainer.settings().run_dir = folder / "throws";
  CHECK_THROWS_AS(static_cast<void>(trainer.fit(data)), std::runtime_error);
  throws = false;
  CHECK((handler() == +own));
  std::ostringstream out;
  during.clear();
  static_cast<void>(trainer.dry_run(data, out));
  CHECK((during.at(0) != +own));
  CHECK((handler() == +own));

  // What ends the process with 75 after a preemption stays, whatever is called before main returns.
  mine.sa_handler = SIG_DFL;
  ::sigaction(SIGTERM, &mine, nullptr);
  preempts = true;
  trainer.settings().run_dir = folder / "preempted";
  CHECK(trainer.fit(data).preempted);
  preempts = false;
  auto const stand_in = handler();
  CHECK((stand_in != SIG_DFL));
  static_cast<void>(trainer.evaluate(data));
  CHECK((handler() == stand_in));
  static_cast<void>(trainer.dry_run(data, out));
  CHECK((handler() == stand_in));
  ::sigaction(SIGTERM, &before, nullptr);
}

}  // namespace frugal_test::policy_spot
