// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/text_width.hpp>
#include <frugal/report/progress/bar.hpp>

#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::policy_progress_pace {

using frugal::detail::Pace;

/// A pace of a run that has begun at 0 s, and is told seconds.
struct Told {
  explicit Told(std::uint64_t first_step) {
    pace.begin(at(0));
    pace.first(first_step, 8 * first_step);
  }
  static Pace::clock::time_point at(double seconds) {
    return Pace::clock::time_point(
        std::chrono::duration_cast<Pace::clock::duration>(std::chrono::duration<double>(seconds)));
  }
  void update(double seconds, std::uint64_t step, std::optional<double> waited = {}) {
    pace.update(at(seconds), step, 8 * step, waited);
  }
  Pace pace;
};

TEST_CASE("rate and time left follow the steps since the last redraw and all of them") {
  Told run(0);
  run.update(10, 1);
  CHECK(run.pace.samples_per_second() == doctest::Approx(0.8));
  CHECK_FALSE(run.pace.seconds_left(1, 101));  // the first step also sets up
  run.update(20, 11);
  CHECK(run.pace.samples_per_second() == doctest::Approx(0.7 * 0.8 + 0.3 * 8));
  CHECK(*run.pace.seconds_left(11, 111) == doctest::Approx(100));
}

TEST_CASE("after a Rollback behind the step of the resume the time left is that of the steps") {
  Told run(9000);
  run.update(4, 9001);
  run.update(3600, 9900);
  double const per_step = 3596.0 / 899;
  CHECK(*run.pace.seconds_left(9900, 10000) == doctest::Approx(100 * per_step));
  double const rate = run.pace.samples_per_second();
  run.update(3610, 8000);
  CHECK(*run.pace.seconds_left(8000, 10000) == doctest::Approx(2000 * per_step));
  CHECK(run.pace.samples_per_second() == rate);
  run.update(3610 + 100 * per_step, 8100);
  CHECK(*run.pace.seconds_left(8100, 10000) == doctest::Approx(1900 * per_step));
  CHECK(run.pace.steps_since_first(8100) == 0);
}

TEST_CASE("the wait for data is its share of the time since the last redraw") {
  Told run(0);
  run.update(1, 1, 0.0);
  CHECK_FALSE(run.pace.data_wait());
  run.update(3, 2, 0.5);
  CHECK(*run.pace.data_wait() == doctest::Approx(0.25));
}

}  // namespace frugal_test::policy_progress_pace

// tests/interop/progress.py shows the same to a terminal emulator.
namespace frugal_test::watch_display {

using namespace frugal::watch;

/// A pseudo-terminal and what has been written to it.
class Terminal {
 public:
  Terminal(unsigned short rows, unsigned short columns) {
    winsize size{};
    size.ws_row = rows;
    size.ws_col = columns;
    REQUIRE(::openpty(&ours_, &theirs_, nullptr, nullptr, &size) == 0);
    file_ = ::fdopen(theirs_, "w");
  }
  Terminal(Terminal const&) = delete;
  Terminal& operator=(Terminal const&) = delete;
  ~Terminal() {
    std::fclose(file_);
    ::close(ours_);
  }
  std::FILE* file() { return file_; }
  void resize(unsigned short rows, unsigned short columns) {
    winsize size{};
    size.ws_row = rows;
    size.ws_col = columns;
    REQUIRE(::ioctl(ours_, TIOCSWINSZ, &size) == 0);
  }
  /// What was written since the last call; returns as the terminal adds them are left out.
  std::string text() {
    // The kernel passes it on when it likes; the mark behind it says that all is there.
    constexpr char mark = '\x01';
    std::fputc(mark, file_);
    std::fflush(file_);
    std::string all;
    while (all.empty() || all.back() != mark) {
      char buffer[4096];
      ssize_t const n = ::read(ours_, buffer, sizeof buffer);
      REQUIRE(n > 0);
      all.append(buffer, static_cast<std::size_t>(n));
    }
    all.pop_back();
    for (std::size_t at; (at = all.find("\r\n")) != std::string::npos;) all.erase(at, 1);
    return all;
  }

 private:
  int ours_ = -1;
  int theirs_ = -1;
  std::FILE* file_ = nullptr;
};

TEST_CASE("lines are drawn below an empty one, on which the cursor comes to rest") {
  Terminal terminal(24, 80);
  Display display(terminal.file(), false);
  display.draw({{"one"}, {"two"}});
  CHECK(terminal.text() == "\r\x1b[J\none\ntwo\x1b[2A\r");
}

TEST_CASE("the end leaves the lines, and the cursor below them, once") {
  Terminal terminal(24, 80);
  {
    Display display(terminal.file(), false);
    display.draw({{"one"}, {"two"}});
    static_cast<void>(terminal.text());
    display.end();
    CHECK(terminal.text() == "\r\x1b[Jone\ntwo\n");
  }
  CHECK(terminal.text().empty());
}

TEST_CASE("what was never drawn leaves nothing") {
  Terminal terminal(24, 80);
  {
    Display const display(terminal.file(), false);
  }
  CHECK(terminal.text().empty());
}

TEST_CASE(
    "the size is that of the moment: lines are cut to the columns, and left out for the rows") {
  Terminal terminal(24, 80);
  Display display(terminal.file(), false);
  display.draw({{"one"}, {"two"}, {"three"}});
  static_cast<void>(terminal.text());
  terminal.resize(3, 4);
  display.draw({{"one"}, {"two"}, {"three"}});
  CHECK(terminal.text() == "\r\x1b[J\none\ntwo\x1b[2A\r");
  terminal.resize(1, 3);
  display.draw({{"one"}, {"two"}, {"three"}});
  CHECK(terminal.text() == "\r\x1b[Jon\r");
}

TEST_CASE("color covers its part of the text, and what is cut is not colored") {
  Terminal terminal(24, 80);
  Display display(terminal.file(), true);
  display.draw({{"[##..]", 1, 3}});
  CHECK(terminal.text() == "\r\x1b[J\n[\x1b[32m##\x1b[0m..]\x1b[1A\r");
  terminal.resize(24, 3);
  display.draw({{"[##..]", 1, 3}});
  CHECK(terminal.text() == "\r\x1b[J\n[\x1b[32m#\x1b[0m\x1b[1A\r");
  terminal.resize(24, 2);
  display.draw({{"[##..]", 1, 3}});
  CHECK(terminal.text() == "\r\x1b[J\n[\x1b[1A\r");
}

TEST_CASE("print puts its lines above the display") {
  Terminal terminal(24, 80);
  Display display(terminal.file(), false);
  display.draw({{"bar"}});
  static_cast<void>(terminal.text());
  print("a\nb", terminal.file());
  CHECK(terminal.text() == "\r\x1b[Ja\nb\n\r\x1b[J\nbar\x1b[1A\r");
}

TEST_CASE("print writes plainly where nothing is drawn") {
  Terminal terminal(24, 80);
  Display display(terminal.file(), false);
  print("a", terminal.file());
  CHECK(terminal.text() == "a\n");
  std::FILE* const file = std::tmpfile();
  display.draw({{"bar"}});
  print("b\n", file);
  CHECK(std::ftell(file) == 2);
  std::fclose(file);
}

}  // namespace frugal_test::watch_display

namespace frugal_test::watch_bar {

using namespace frugal::watch;

BarLine example() {
  return {.epoch = 2,
          .epochs = 20,
          .step = 250,
          .total_steps = 1000,
          .samples_per_second = 12345,
          .seconds_left = 187,
          .loss = 0.71309,
          .metric = "accuracy",
          .best = 0.9013};
}

/// A run in its third epoch, with everything that can be known.
BarLine complete() {
  BarLine line = example();
  line.in_epoch = Share{12, 50};
  line.last = 0.8953;
  line.memory_bytes = std::uint64_t{3} << 29U;
  line.data_wait = 0.0312;
  line.gauges = {{"dollars", 1.2345}, {"dollars_projected", 4.938}, {"device_idle", 0.35}};
  return line;
}

TEST_CASE("a wide terminal shows the run, with its figures, above the steps of the epoch") {
  auto const lines = bar_lines(complete(), 200);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].text ==
        "epoch 3/20 [#######.......................]  25%  3m07s left  best accuracy 0.9013  "
        "last 0.8953  $1.23 of $4.94  idle 35%  1.5 GiB");
  CHECK(lines[1].text ==
        "steps      [#######.......................]  24%  step 12/50  12.3k samples/s  "
        "loss 0.7131  data wait 3.1%");
}

TEST_CASE("a validation has a bar below them while it runs") {
  BarLine line = complete();
  line.validation = Share{10, 40};
  auto const lines = bar_lines(line, 200);
  REQUIRE(lines.size() == 3);
  CHECK(lines[2].text == "validation [#######.......................]  25%  batch 10/40");
  line.validation = Share{10, {}};
  CHECK(bar_lines(line, 200).at(2).text == "validation  batch 10");
}

TEST_CASE("the part of a bar that is done is what is colored") {
  DisplayLine const line = bar_lines(complete(), 200).at(0);
  CHECK(line.text.substr(line.color_begin, line.color_end - line.color_begin) == "#######");
}

TEST_CASE("a name with control characters does not move the cursor") {
  BarLine line = example();
  line.metric = "a\x1b[2Jb";
  line.gauges = {{"x\ny", 1}};
  for (std::string const& text :
       {line_text(line), bar_lines(line, 200).at(0).text, bar_lines(line, 200).at(1).text}) {
    for (char const c : text) CHECK(static_cast<unsigned char>(c) >= 0x20);
  }
}

TEST_CASE("the fraction of the device's peak stands after the rate, if known") {
  BarLine line = example();
  line.utilisation = 0.41237;
  CHECK(line_text(line) ==
        "epoch 3/20  step 250/1000  12.3k samples/s  41.24% of peak  3m07s left  loss 0.7131  "
        "best accuracy 0.9013");
}

TEST_CASE("no line reaches the last column, and no figure is cut next to a bar") {
  BarLine line = complete();
  line.validation = Share{10, 40};
  line.metric = "pr\u00e9cision";
  std::vector<DisplayLine> const whole = bar_lines(line, 200);
  for (std::size_t columns = 1; columns < 160; ++columns) {
    CAPTURE(columns);
    auto const lines = bar_lines(line, columns);
    REQUIRE(lines.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      std::string const& text = lines[i].text;
      CHECK(text_width(text) < columns);
      if (text.find('[') == std::string::npos) continue;
      // What stands behind the bar is the beginning of the whole, up to the end of a figure.
      std::string const tail = text.substr(text.find("] ") + 2);
      std::string const all = whole[i].text.substr(whole[i].text.find("] ") + 2);
      CHECK(all.substr(0, tail.size()) == tail);
      CHECK((tail.size() == all.size() || all.substr(tail.size(), 2) == "  "));
    }
  }
}

TEST_CASE("a run of unknown length shows its step instead of a bar") {
  BarLine line = example();
  line.total_steps.reset();
  line.seconds_left.reset();
  line.best.reset();
  CHECK(bar_lines(line, 200).at(0).text == "epoch 3/20  step 250");
  CHECK(bar_lines(line, 200).at(1).text == "steps       12.3k samples/s  loss 0.7131");
}

TEST_CASE("a run past its length is complete and no more") {
  BarLine line = example();
  line.step = 1001;
  line.epoch = 20;
  std::string const text = bar_lines(line, 200).at(0).text;
  CHECK(text.find("epoch 20/20 [##############################] 100%") == 0);
}

TEST_CASE("a line for a file has the step and the figures") {
  CHECK(line_text(example()) ==
        "epoch 3/20  step 250/1000  12.3k samples/s  3m07s left  loss 0.7131  best accuracy "
        "0.9013");
  CHECK(line_text(complete()) ==
        "epoch 3/20  step 250/1000  12.3k samples/s  3m07s left  loss 0.7131  best accuracy "
        "0.9013  last 0.8953  data wait 3.1%  1.5 GiB  $1.23 of $4.94  idle 35%");
}

TEST_CASE("small sums of money show their cents, and an unknown price hours") {
  auto const texts = [](std::vector<std::pair<std::string, double>> const& gauges) {
    return frugal::watch::detail::gauge_texts(gauges);
  };
  using Texts = std::vector<std::string>;
  CHECK(texts({{"dollars", 0.0123}}) == Texts{"$0.012"});
  CHECK(texts({{"dollars", 0.000023}}) == Texts{"$0.000023"});
  CHECK(texts({{"dollars", 0.0123}, {"hours", 0.5}}) == Texts{"$0.012"});
  CHECK(texts({{"dollars_projected", 37748}}) == Texts{"$37748.00 projected"});
  CHECK(texts({{"hours", 0.51}, {"hours_projected", 12}}) == Texts{"0.51 h of 12 h"});
  CHECK(texts({{"kilowatt_hours", 1.25}, {"kg_co2", 0.4}, {"queue", 7}, {"memory_bytes", 9}}) ==
        Texts{"1.25 kWh", "0.4 kg CO2", "queue 7"});
  CHECK(texts({{"kilowatt_hours", 1.25}, {"kilowatt_hours_projected", 30}}) ==
        Texts{"1.25 kWh of 30 kWh"});
  CHECK(texts({{"device_memory_bytes", 9}}).empty());  // shown as memory
}

}  // namespace frugal_test::watch_bar
