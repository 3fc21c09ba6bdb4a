// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/text_width.hpp>
#include <frugal/report/progress/bar.hpp>

#include <string>
#include <utility>
#include <vector>

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

TEST_CASE("the part of a bar that is done is what is coloured") {
  DisplayLine const line = bar_lines(complete(), 200).at(0);
  CHECK(line.text.substr(line.colour_begin, line.colour_end - line.colour_begin) == "#######");
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
