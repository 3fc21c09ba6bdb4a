// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace frugal_test::policy_checkpoint_interrupt {

using namespace support;
using frugal::Every;
using frugal::OnInterrupt;
using Optimizer = frugal::Optimize<frugal::AdamW>;
using Saves = frugal::Checkpoint<Every<100>>;
using InThread = frugal::Checkpoint<Every<100>, frugal::Async>;

using Handler = void (*)(int);

Handler handler_of(int signal) {
  struct sigaction now{};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler;
}

/// The program's own handling of a signal, for the duration of a test. The test framework handles
/// Ctrl-C, and the shell that started it may ignore it.
struct Program {
  explicit Program(Handler handler, int which = SIGINT) : signal(which) {
    struct sigaction action{};
    action.sa_handler = handler;
    ::sigaction(signal, &action, &former);
  }
  Program(Program const&) = delete;
  ~Program() { ::sigaction(signal, &former, nullptr); }
  int signal;
  struct sigaction former{};
};

/// Calls back before each batch, of training and of validation.
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

/// Two epochs of 11 batches; Ctrl-C before one of the batches, counted over both kinds; 0: none.
template <class... Ps>
Outcome run(std::filesystem::path const& folder, int signal_at, Ps const&... policies) {
  Outcome outcome;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
  int count = 0;
  Witness const witness{[&](bool training) {
    ++(training ? outcome.training : outcome.validation);
    if (signal_at != 0 && count >= signal_at) ++outcome.after;
    if (++count == signal_at) ::raise(SIGINT);
  }};
  frugal::Trainer trainer{module,
                          witness,
                          frugal::Settings{.run_dir = folder, .epochs = 2, .seed = 7},
                          Optimizer{},
                          frugal::Validate<Every<5>, frugal::SanityBatches<0>>{},
                          policies...};
  frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
  frugal::TensorDataset valid(samples(15, 92), {.batch = 4});
  outcome.report = trainer.fit(train, valid);
  outcome.tensors = tensors_of(*module);
  return outcome;
}

std::uint64_t newest_step(std::filesystem::path const& folder) {
  auto const newest = frugal::RunDirectory(folder, frugal::Access::read).newest_valid();
  REQUIRE(newest.checkpoint);
  return newest.checkpoint->step();
}

TEST_CASE("Ctrl-C finishes the step, saves, and has fit return with code 130") {
  Program const program(SIG_DFL);
  TemporaryFolder const folder;
  Outcome const outcome = run(folder.path(), 3, Saves{});
  CHECK(outcome.report.interrupted);
  CHECK(outcome.report.preempted);
  CHECK(outcome.report.exit_code() == 130);
  CHECK(outcome.report.stopped_by == "Ctrl-C");
  CHECK(outcome.report.steps == 3);
  CHECK(outcome.after == 0);
  CHECK(newest_step(folder.path()) == 3);
}

template <class... Ps>
void resumes_in_the_same_bits(Ps const&... policies) {
  Program const program(SIG_DFL);
  TemporaryFolder const folder;
  Outcome const whole = run(folder / "whole", 0, policies...);
  REQUIRE_FALSE(whole.report.interrupted);
  CHECK(whole.report.exit_code() == 0);
  for (int at = 1; at <= whole.training + whole.validation; ++at) {
    CAPTURE(at);
    auto const place = folder / std::to_string(at);
    Outcome const first = run(place, at, policies...);
    CHECK(first.report.interrupted);
    CHECK(first.after == 0);
    Outcome const second = run(place, 0, policies...);
    CHECK_FALSE(second.report.interrupted);
    CHECK_FALSE(second.report.preempted);
    CHECK(second.report.stopped_by.empty());
    CHECK(same_bits(second.tensors, whole.tensors));
    REQUIRE(second.report.validations.size() == whole.report.validations.size());
    for (std::size_t i = 0; i < whole.report.validations.size(); ++i) {
      CHECK(second.report.validations[i].metrics == whole.report.validations[i].metrics);
    }
    CHECK(first.training + second.training == whole.training);
  }
}

TEST_CASE("whenever it comes, the resumed run ends with the bits of an undisturbed one") {
  resumes_in_the_same_bits(Saves{});
}

TEST_CASE("so it does together with Spot, and with a writing thread") {
  resumes_in_the_same_bits(InThread{}, frugal::Spot<frugal::SigtermSave>{});
}

int mine = 0;
void handler_of_mine(int) { ++mine; }

TEST_CASE("a program that handles Ctrl-C, or ignores it, still does so") {
  for (Handler const own : {Handler{handler_of_mine}, Handler{SIG_IGN}}) {
    Program const program(own);
    mine = 0;
    TemporaryFolder const folder;
    Outcome const outcome = run(folder.path(), 3, Saves{});
    CHECK_FALSE(outcome.report.interrupted);
    CHECK(outcome.report.steps == 22);
    CHECK(mine == (own == handler_of_mine ? 1 : 0));
    CHECK((handler_of(SIGINT) == own));
  }
}

TEST_CASE("a handler that the program installs during fit stays") {
  Program const program(SIG_DFL);
  TemporaryFolder const folder;
  Witness const witness{[](bool) {
    struct sigaction action{};
    action.sa_handler = handler_of_mine;
    ::sigaction(SIGINT, &action, nullptr);
  }};
  frugal::Trainer trainer{std::make_shared<Mlp>(), witness,
                          frugal::Settings{.run_dir = folder.path(), .epochs = 1}, Optimizer{},
                          Saves{}};
  static_cast<void>(trainer.fit(frugal::TensorDataset(samples(12), {.batch = 4})));
  CHECK((handler_of(SIGINT) == handler_of_mine));
}

TEST_CASE("the handler is installed during fit, unless on_interrupt turns it off") {
  Program const program(SIG_DFL);
  Program const pipe(SIG_DFL, SIGPIPE);
  for (OnInterrupt const what : {OnInterrupt::Save, OnInterrupt::Terminate}) {
    TemporaryFolder const folder;
    bool taken = false;
    Witness const witness{[&](bool) { taken = handler_of(SIGINT) != SIG_DFL; }};
    frugal::Trainer trainer{std::make_shared<Mlp>(), witness,
                            frugal::Settings{.run_dir = folder.path(), .epochs = 1}, Optimizer{},
                            Saves{.on_interrupt = what}};
    static_cast<void>(trainer.fit(frugal::TensorDataset(samples(12), {.batch = 4})));
    CHECK(taken == (what == OnInterrupt::Save));
    CHECK((handler_of(SIGINT) == SIG_DFL));
    CHECK((handler_of(SIGPIPE) == SIG_DFL));
  }
}

TEST_CASE("a fit after an interrupted one is not interrupted") {
  Program const program(SIG_DFL);
  TemporaryFolder const folder;
  CHECK(run(folder / "first", 3, Saves{}).report.interrupted);
  Outcome const next = run(folder / "second", 0, Saves{});
  CHECK_FALSE(next.report.interrupted);
  CHECK(next.report.steps == 22);
}

TEST_CASE("a fit inside another: Ctrl-C saves both") {
  Program const program(SIG_DFL);
  TemporaryFolder const folder;
  frugal::Report inner;
  Witness const witness{[&](bool) { inner = run(folder / "inner", 2, Saves{}).report; }};
  frugal::Trainer trainer{std::make_shared<Mlp>(), witness,
                          frugal::Settings{.run_dir = folder / "outer", .epochs = 2}, Optimizer{},
                          Saves{}};
  frugal::Report const outer = trainer.fit(frugal::TensorDataset(samples(12), {.batch = 4}));
  CHECK(inner.interrupted);
  CHECK(inner.steps == 2);
  CHECK(newest_step(folder / "inner") == 2);
  CHECK(outer.interrupted);
  CHECK(outer.steps == 1);
  CHECK(newest_step(folder / "outer") == 1);
  CHECK((handler_of(SIGINT) == SIG_DFL));
}

TEST_CASE("the log has the preemption once, also together with Spot") {
  Program const program(SIG_DFL);
  TemporaryFolder const folder;
  run(folder / "alone", 3, Saves{}, frugal::Log<Every<100>>{});
  run(folder / "beside", 3, Saves{}, frugal::Log<Every<100>>{},
      frugal::Spot<frugal::SigtermSave>{});
  for (char const* const name : {"alone", "beside"}) {
    int events = 0;
    for (std::string const& line : lines_of(text_of(folder / name / "metrics.jsonl"))) {
      if (line.find(R"("event":"preempted")") == std::string::npos) continue;
      ++events;
      CHECK(line.find(R"("by":"Ctrl-C")") != std::string::npos);
    }
    CHECK(events == 1);
  }
}

/// Raises Ctrl-C during a save, a given number of times.
struct InSave {
  using kind = support::kinds::spy;
  using listens = frugal::list<frugal::on::step>;
  std::uint64_t at_step = 0;  ///< in the save of this step
  struct State {
    std::uint64_t at_step, step = 0;
    explicit State(InSave const& settings) : at_step(settings.at_step) {}
    void on_step(frugal::Step& phase) { step = phase.counters().step; }
    template <class Archive>
    void persist(Archive& archive) {
      archive("step", step);
      if (!Archive::loading && step != 0 && step == at_step) ::raise(SIGINT);
    }
  };
};

TEST_CASE("Ctrl-C in the last save: the run has ended, and the report says both") {
  Program const program(SIG_DFL);
  TemporaryFolder const folder;
  Outcome const outcome = run(folder.path(), 0, Saves{}, InSave{.at_step = 22});
  CHECK(outcome.report.interrupted);
  CHECK_FALSE(outcome.report.preempted);
  CHECK(outcome.report.stopped_by.empty());
  CHECK(outcome.report.exit_code() == 130);
  CHECK(newest_step(folder.path()) == 22);
}

/// The exit status of a process whose `body` returns its code; its stderr is in the file.
template <class Body>
int end_of_process(std::filesystem::path const& folder, Body&& body) {
  pid_t const child = ::fork();
  if (child == 0) {
    if (std::freopen((folder / "stderr").c_str(), "w", stderr) == nullptr) std::_Exit(3);
    at::set_num_threads(1);
    ::signal(SIGINT, SIG_DFL);
    ::signal(SIGPIPE, SIG_DFL);
    std::_Exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_CASE("stderr says in one line what was saved, and how to continue") {
  TemporaryFolder const folder;
  int const status = end_of_process(
      folder.path(), [&] { return run(folder / "run", 3, Saves{}).report.exit_code(); });
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(text_of(folder / "stderr") ==
        "frugal: Ctrl-C: saved at step 3; run the same command again to resume\n");
}

TEST_CASE("if Spot ends the process, it does so after a Ctrl-C as well, with code 130") {
  TemporaryFolder const folder;
  int const status = end_of_process(folder.path(), [&] {
    run(folder / "run", 3, Saves{},
        frugal::Spot<frugal::SigtermSave>{.on_preemption = frugal::Preempted::Exit});
    return 4;
  });
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(text_of(folder / "stderr") ==
        "frugal: Ctrl-C: saved at step 3; run the same command again to resume\n");
}

TEST_CASE("a second Ctrl-C exits at once, in the step and in the save") {
  TemporaryFolder const folder;
  int const in_step = end_of_process(folder.path(), [&] {
    Witness const witness{[](bool) {
      ::raise(SIGINT);
      ::raise(SIGINT);
    }};
    frugal::Trainer trainer{std::make_shared<Mlp>(), witness,
                            frugal::Settings{.run_dir = folder / "step", .epochs = 2}, Optimizer{},
                            Saves{}};
    static_cast<void>(trainer.fit(frugal::TensorDataset(samples(12), {.batch = 4})));
    return 4;
  });
  REQUIRE(WIFEXITED(in_step));
  CHECK(WEXITSTATUS(in_step) == 130);
  CHECK(newest_step(folder / "step") == 0);

  int const in_save = end_of_process(folder.path(), [&] {
    run(folder / "save", 3, Saves{}, InSave{.at_step = 3});
    return 4;
  });
  REQUIRE(WIFEXITED(in_save));
  CHECK(WEXITSTATUS(in_save) == 130);
  CHECK(newest_step(folder / "save") == 0);
  // Remains of the interrupted save are harmless.
  Program const program(SIG_DFL);
  CHECK(run(folder / "save", 0, Saves{}, InSave{}).report.steps == 22);
}

/// Prints in each step, like a progress bar.
struct Prints {
  using kind = support::kinds::spy;
  using listens = frugal::list<frugal::on::step>;
  int file = -1;
  struct State {
    using transient = void;
    int file;
    explicit State(Prints const& settings) : file(settings.file) {}
    void on_step(frugal::Step&) {
      [[maybe_unused]] auto const written = ::write(file, "step\n", 5);
    }
  };
};

TEST_CASE("a pipe that Ctrl-C has broken, as in `trainer | tee log`, does not prevent the save") {
  TemporaryFolder const folder;
  for (int const signal_at : {3, 0}) {
    auto const place = folder / std::to_string(signal_at);
    int const status = end_of_process(folder.path(), [&] {
      int ends[2];
      if (::pipe(ends) != 0) return 3;
      int count = 0;
      Witness const witness{[&](bool) {
        if (++count != 3) return;
        ::close(ends[0]);
        if (signal_at != 0) ::raise(SIGINT);
      }};
      frugal::Trainer trainer{std::make_shared<Mlp>(),
                              witness,
                              frugal::Settings{.run_dir = place, .epochs = 2},
                              Optimizer{},
                              Saves{},
                              Prints{.file = ends[1]}};
      return trainer.fit(frugal::TensorDataset(samples(43), {.batch = 4})).exit_code();
    });
    if (signal_at == 0) {
      // Without Ctrl-C a broken pipe acts as usual.
      REQUIRE(WIFSIGNALED(status));
      CHECK(WTERMSIG(status) == SIGPIPE);
      continue;
    }
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 130);
    CHECK(newest_step(place) == 3);
  }
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
      write_file(folder / "checkpoints");
    }
    static void write_file(std::filesystem::path const& path) { std::ofstream(path) << "none"; }
  };
};

TEST_CASE("a Ctrl-C whose save fails reports that, with the code of an error") {
  TemporaryFolder const folder;
  int const status = end_of_process(folder.path(), [&] {
    return run(folder / "run", 1, Saves{.on_failure = frugal::OnFailure::Continue},
               Spoiler{.folder = folder / "run"})
        .report.exit_code();
  });
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 74);
  std::string const said = text_of(folder / "stderr");
  CHECK(said.find("frugal: Ctrl-C: stopped at step 1, and that is not saved: frugal: the call "
                  "mkdir") == 0);
}

}  // namespace frugal_test::policy_checkpoint_interrupt
