// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <frugal/report/progress.hpp>

#include "support/files.hpp"
#include "support/scripted.hpp"

namespace frugal_test::policy_progress {

using namespace frugal_test::support;
using frugal::Optimize;
using frugal::Progress;
using frugal::SGD;
using frugal::TensorDataset;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string everything_in(std::FILE* file) {
  std::rewind(file);
  std::string text;
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  return text;
}

/// Two epochs of 5 steps, validated after each.
template <class... Ps>
void fit(Ps const&... policies) {
  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 2}, Optimize<SGD>{}, policies...};
  static_cast<void>(trainer.fit(TensorDataset(samples(18), {.batch = 4}),
                                TensorDataset(samples(9, 92), {.batch = 4})));
}

bool begins_with(std::string const& text, std::string const& part) {
  return text.compare(0, part.size(), part) == 0;
}

TEST_CASE("in a file there is a line per step at a cadence of 0, one per validation, and the end") {
  File const file(std::tmpfile());
  fit(Progress<>{.out = file.get(), .line_seconds = 0});
  auto const lines = lines_of(everything_in(file.get()));
  REQUIRE(lines.size() == 10 + 2 + 2 + 1);
  CHECK(begins_with(lines[0], "epoch 1/2  step 1/10  "));
  CHECK(lines[0].find(" samples/s") != std::string::npos);
  CHECK(lines[0].find("loss ") != std::string::npos);
  CHECK(begins_with(lines[5], "validation at step 5  loss "));
  CHECK(lines[6].find("best loss ") != std::string::npos);
  CHECK(begins_with(lines.back(), "10 steps in "));
}

TEST_CASE("the line of an epoch's end has that epoch's number, and calls its loss a mean") {
  File const file(std::tmpfile());
  Seen seen;
  fit(Progress<>{.out = file.get(), .line_seconds = 0}, Spy{.seen = &seen});
  auto const lines = lines_of(everything_in(file.get()));
  auto const loss = [](std::string const& name, double value) {
    return "  " + name + " " + frugal::watch::short_number(value);
  };
  CHECK(begins_with(lines.at(4), "epoch 1/2  step 5/10  "));
  CHECK(lines[4].find(loss("loss", seen.losses[4])) != std::string::npos);
  CHECK(begins_with(lines.at(6), "epoch 1/2  step 5/10  "));
  CHECK(lines[6].find(loss("mean loss", seen.epoch_losses[0])) != std::string::npos);
  CHECK(begins_with(lines.at(7), "epoch 2/2  step 6/10  "));
  CHECK(lines[7].find("mean") == std::string::npos);
  CHECK(begins_with(lines.at(lines.size() - 2), "epoch 2/2  step 10/10  "));
}

TEST_CASE("between two lines some time passes: a short run has its first step and its epochs") {
  File const file(std::tmpfile());
  fit(Progress<>{.out = file.get(), .line_seconds = 1e6});
  CHECK(lines_of(everything_in(file.get())).size() == 1 + 2 + 2 + 1);
}

TEST_CASE("an infinite time between lines is one, and does not overflow into a line per step") {
  for (double const never : {std::numeric_limits<double>::infinity(), 1e300, std::nan("")}) {
    File const file(std::tmpfile());
    fit(Progress<>{.out = file.get(), .line_seconds = never});
    CHECK(lines_of(everything_in(file.get())).size() == 1 + 2 + 2 + 1);
  }
}

TEST_CASE("the last line says what stopped the run") {
  File const file(std::tmpfile());
  fit(Progress<>{.out = file.get()}, Resume{.stop_at = 3});
  CHECK(lines_of(everything_in(file.get())).back().find("3 steps in ") == 0);
  CHECK(lines_of(everything_in(file.get())).back().find("stopped by test.Restore") !=
        std::string::npos);
}

TEST_CASE("a resumed run counts its own steps and not those before it") {
  std::map<std::uint64_t, Frozen> saved;
  fit(Progress<>{.out = nullptr}, Resume{.after_step = &saved});
  for (std::uint64_t const step : {1U, 4U, 5U, 9U}) {
    CAPTURE(step);
    File const file(std::tmpfile());
    fit(Progress<>{.out = file.get()}, Resume{.from = &saved.at(step)});
    CHECK(begins_with(lines_of(everything_in(file.get())).back(),
                      std::to_string(10 - step) + " steps in "));
  }
}

TEST_CASE("the best value is the best, whatever comes later, and a NaN does not count") {
  File const file(std::tmpfile());
  run_script({0.5, std::nan(""), 0.25, 0.75}, Progress<>{.out = file.get(), .line_seconds = 0});
  auto const lines = lines_of(everything_in(file.get()));
  CHECK(lines[lines.size() - 2].find("best loss 0.25") != std::string::npos);
}

TEST_CASE("without an output nothing is written, and nothing fails") {
  CHECK_NOTHROW(fit(Progress<>{.out = nullptr}));
}

TEST_CASE("an output that accepts nothing does not end the run") {
  File const full(std::fopen("/dev/full", "w"));
  CHECK_NOTHROW(fit(Progress<>{.out = full.get(), .line_seconds = 0}));
}

/// A pipe whose reader has gone, as of `program 2>&1 | head`. Its writer gets a SIGPIPE, which ends
/// this program.
File broken_pipe() {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  ::close(ends[0]);
  return File(::fdopen(ends[1], "w"));
}

TEST_CASE("a reader that has gone does not end the run") {
  for (double const seconds : {0.0, 1e6}) {
    File const broken = broken_pipe();
    Seen seen;
    fit(Progress<>{.out = broken.get(), .line_seconds = seconds}, Spy{.seen = &seen});
    CHECK(seen.losses.size() == 10);
  }
}

TEST_CASE("a validation's line is in the file at once") {
  File const file(std::tmpfile());
  std::size_t seen = 0;
  auto const look = [&](frugal::Batch const&) {
    // Through the descriptor: what is in the stream's buffer is lost in a kill.
    std::string text(1 << 16, ' ');
    ssize_t const got = ::pread(::fileno(file.get()), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    seen = std::max(seen, lines_of(text).size());
  };
  auto const objective = [&](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    look(batch);
    return frugal::CrossEntropy{}(module, batch);
  };
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          objective,
                          frugal::Settings{.steps = 4},
                          Optimize<SGD>{},
                          frugal::Validate<frugal::Every<2>>{},
                          Progress<>{.out = file.get(), .line_seconds = 1e6}};
  static_cast<void>(trainer.fit(TensorDataset(samples(18), {.batch = 4}),
                                TensorDataset(samples(9, 92), {.batch = 4})));
  CHECK(seen == 2);  // the first step, and the validation after the second
}

/// A variable of the environment for its lifetime; null: not set.
class Variable {
 public:
  Variable(char const* name, char const* value) : name_(name) {
    if (char const* const before = std::getenv(name)) before_ = before;
    set(value);
  }
  Variable(Variable const&) = delete;
  Variable& operator=(Variable const&) = delete;
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(char const* value) const {
    if (value == nullptr) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, value, 1);
    }
  }
  char const* name_;
  std::optional<std::string> before_;
};

/// A terminal with a given width, and what was written to it; the environment is that of a person.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    REQUIRE(::openpty(&ours_, &theirs_, nullptr, nullptr, &size) == 0);
    file_.reset(::fdopen(theirs_, "w"));
  }
  Terminal(Terminal const&) = delete;
  Terminal& operator=(Terminal const&) = delete;
  ~Terminal() { ::close(ours_); }

  std::FILE* file() { return file_.get(); }
  /// Closes the terminal's end and reads the output.
  std::string text() {
    file_.reset();
    std::string all;
    char buffer[4096];
    // The read fails when everything has been read and the other end is closed.
    for (ssize_t n; (n = ::read(ours_, buffer, sizeof buffer)) > 0;) {
      all.append(buffer, static_cast<std::size_t>(n));
    }
    return all;
  }

 private:
  int ours_ = -1;
  int theirs_ = -1;
  File file_;
  Variable term_{"TERM", "xterm"};
  Variable ci_{"CI", nullptr};
};

/// The lines of each redraw: everything after a return and an erasure, without colors.
std::vector<std::vector<std::string>> drawn(std::string text) {
  for (std::string const color : {"\x1b[32m", "\x1b[0m"}) {
    for (std::size_t at; (at = text.find(color)) != std::string::npos;) {
      text.erase(at, color.size());
    }
  }
  std::string const erase = "\r\x1b[J";
  std::vector<std::vector<std::string>> all;
  for (std::size_t at = text.find(erase); at != std::string::npos; at = text.find(erase, at)) {
    at += erase.size();
    std::string const part = text.substr(at, text.find('\x1b', at) - at);
    std::vector<std::string> lines;
    for (std::string line : lines_of(part)) {
      line.erase(std::remove(line.begin(), line.end(), '\r'), line.end());
      if (!line.empty()) lines.push_back(line);
    }
    all.push_back(lines);
  }
  return all;
}

TEST_CASE("a terminal shows bars of the run and of the epoch, redrawn in place, in its width") {
  for (unsigned short const columns : std::initializer_list<unsigned short>{20, 60, 80, 100, 200}) {
    CAPTURE(columns);
    Terminal terminal(columns);
    fit(Progress<>{.out = terminal.file()});
    std::string const text = terminal.text();
    auto const redraws = drawn(text);
    CHECK(redraws.size() >= 4);  // the first step, the two epochs and the end, however long it took
    for (auto const& lines : redraws) {
      REQUIRE(lines.size() >= 2);
      CHECK(lines.size() <= 3);
      for (std::string const& line : lines) {
        if (line.find(" steps in ") == std::string::npos) CHECK(line.size() < columns);
      }
    }
    CHECK(begins_with(redraws.back().front(), "epoch 2/2"));
    if (columns == 200) {
      CHECK(redraws.front().at(0).find("[###...........................]  10%") !=
            std::string::npos);
      CHECK(redraws.front().at(1).find("[######........................]  20%  step 1/5") !=
            std::string::npos);
      CHECK(redraws.back().at(0).find("[##############################] 100%") !=
            std::string::npos);
      CHECK(redraws.back().at(1).find("step 5/5") != std::string::npos);
      CHECK(redraws.back().at(0).find("iB") != std::string::npos);  // memory
      CHECK(redraws.back().at(0).find("last ") != std::string::npos);
    }
    CHECK(text.find("\n10 steps in ") != std::string::npos);
  }
}

TEST_CASE("a dumb terminal, one without a name, that of a CI job and a notebook get plain lines") {
  using Setting = std::pair<char const*, char const*>;
  for (auto const& [name, value] : {Setting{"TERM", "dumb"}, Setting{"TERM", nullptr},
                                    Setting{"CI", "true"}, Setting{"JPY_PARENT_PID", "1936"}}) {
    CAPTURE(name);
    Terminal terminal(80);
    Variable const variable(name, value);
    fit(Progress<>{.out = terminal.file()});
    std::string const text = terminal.text();
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find("validation at step 5") != std::string::npos);
  }
}

/// Publishes what CostMeter would.
struct Spends {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.Spends";
  };
  using listens = frugal::list<frugal::on::step>;
  using before = frugal::list<frugal::kinds::progress>;
  struct State {
    explicit State(Spends const&) {}
    void on_step(frugal::Step const& phase) const {
      phase.set_gauge("dollars", 0.25 * static_cast<double>(phase.counters().step));
      phase.set_gauge("dollars_projected", 2.5);
    }
  };
};

TEST_CASE("gauges are on every line, and a plain line has no control character") {
  File const file(std::tmpfile());
  fit(Progress<>{.out = file.get(), .line_seconds = 0}, Spends{});
  std::string const text = everything_in(file.get());
  auto const lines = lines_of(text);
  CHECK(lines.at(0).find("  $0.250 of $2.50") != std::string::npos);
  CHECK(lines.at(lines.size() - 2).find("  $2.50 of $2.50") != std::string::npos);
  for (char const c : text) CHECK((c == '\n' || static_cast<unsigned char>(c) >= 0x20));
}

/// Waits in its validation's batches until the next redraw is due.
struct SlowBatches {
  TensorDataset inner;
  void seek(frugal::Cursor const& where) { inner.seek(where); }
  std::optional<frugal::Batch> next() {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return inner.next();
  }
  std::uint64_t samples() const { return inner.samples(); }
  std::uint64_t batches() const { return inner.batches(); }
};

TEST_CASE("a validation draws its batches, of how many there are, and its bar goes with it") {
  Terminal terminal(120);
  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, frugal::Settings{},
                          Optimize<SGD>{}, Progress<>{.out = terminal.file()}};
  static_cast<void>(trainer.fit(TensorDataset(samples(8), {.batch = 4}),
                                SlowBatches{TensorDataset(samples(9, 92), {.batch = 4})}));
  auto const redraws = drawn(terminal.text());
  std::vector<std::string> batches;
  for (auto const& lines : redraws) {
    if (lines.size() == 3 && begins_with(lines[2], "validation"))
      batches.push_back(lines[2].substr(lines[2].find("batch ")));
  }
  REQUIRE(batches.size() >= 3);
  CHECK(batches[0] == "batch 1/3");
  CHECK(batches[1] == "batch 2/3");
  CHECK(batches[2] == "batch 3/3");
  CHECK(begins_with(redraws.at(1).at(2), "validation ["));
  CHECK(redraws.back().at(0).find("validation") == std::string::npos);
}

TEST_CASE("plain lines can be requested on a terminal") {
  Terminal terminal(80);
  fit(Progress<>{.out = terminal.file(), .plain = true});
  std::string const text = terminal.text();
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("validation at step 5") != std::string::npos);
}

TEST_CASE("an error begins on a new line after the bar") {
  Terminal terminal(80);
  auto const fails = [](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    if (batch.data.size(0) == 2) throw std::runtime_error("broken");
    return module->forward(batch.data).sum();
  };
  frugal::Trainer trainer{std::make_shared<Mlp>(), fails, frugal::Settings{}, Optimize<SGD>{},
                          Progress<>{.out = terminal.file()}};
  CHECK_THROWS_AS(trainer.fit(TensorDataset(samples(6), {.batch = 4})), std::runtime_error);
  std::string const text = terminal.text();
  CHECK(text.back() == '\n');
  // Without a cursor-up behind the last line.
  CHECK(text.rfind("loss ") > text.rfind("\x1b["));
}

}  // namespace frugal_test::policy_progress
