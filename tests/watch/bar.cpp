// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/watch/bar.hpp>

#include <limits>

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

TEST_CASE("a rate has three digits and a unit") {
  CHECK(rate_text(0) == "0");
  CHECK(rate_text(950) == "950");
  CHECK(rate_text(999.4) == "999");
  CHECK(rate_text(999.6) == "1k");
  CHECK(rate_text(12345) == "12.3k");
  CHECK(rate_text(999999) == "1M");
  CHECK(rate_text(4.56e6) == "4.56M");
  CHECK(rate_text(7.8e9) == "7.8G");
}

TEST_CASE("a duration is shown in its two largest units") {
  CHECK(duration_text(0) == "0s");
  CHECK(duration_text(59.4) == "59s");
  CHECK(duration_text(59.6) == "1m00s");
  CHECK(duration_text(187) == "3m07s");
  CHECK(duration_text(7500) == "2h05m");
  CHECK(duration_text(273600) == "3d04h");
}

TEST_CASE("an invalid duration is a question mark") {
  CHECK(duration_text(-1) == "?");
  CHECK(duration_text(std::numeric_limits<double>::quiet_NaN()) == "?");
}

TEST_CASE("a wide terminal shows the bar, a quarter of it filled, and all figures") {
  std::string const text = bar_text(example(), 200);
  CHECK(text ==
        "epoch 3/20 [#######.......................]  25%  12.3k samples/s  3m07s left  "
        "loss 0.7131  best accuracy 0.9013");
}

TEST_CASE("the fraction of the device's peak stands after the rate, if known") {
  BarLine line = example();
  line.utilisation = 0.41237;
  CHECK(line_text(line) ==
        "epoch 3/20  step 250/1000  12.3k samples/s  41.24% of peak  3m07s left  loss 0.7131  "
        "best accuracy 0.9013");
}

TEST_CASE("no line reaches the last column, and no figure is truncated next to a bar") {
  std::string const whole = bar_text(example(), 200);
  std::string const tail = whole.substr(whole.find("25%"));
  for (std::size_t columns = 1; columns < 140; ++columns) {
    CAPTURE(columns);
    std::string const text = bar_text(example(), columns);
    CHECK(text.size() < columns);
    if (text.find('[') != std::string::npos) {
      CHECK(text.substr(text.size() - tail.size()) == tail);
    }
  }
}

TEST_CASE("a run of unknown length shows its step instead of a bar") {
  BarLine line = example();
  line.total_steps.reset();
  line.seconds_left.reset();
  line.best.reset();
  CHECK(bar_text(line, 200) == "epoch 3/20  step 250  12.3k samples/s  loss 0.7131");
}

TEST_CASE("a run past its length is complete and no more") {
  BarLine line = example();
  line.step = 1001;
  line.epoch = 20;
  std::string const text = bar_text(line, 200);
  CHECK(text.find("epoch 20/20 [##############################] 100%") == 0);
}

TEST_CASE("a line for a file has the step and the figures") {
  CHECK(line_text(example()) ==
        "epoch 3/20  step 250/1000  12.3k samples/s  3m07s left  loss 0.7131  best accuracy "
        "0.9013");
}

}  // namespace frugal_test::watch_bar
