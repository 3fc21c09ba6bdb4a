// SPDX-License-Identifier: Apache-2.0
// torch-free
// Draws the bars of Progress on the terminal that standard error is, as the lines of standard input
// say; progress.py reads the screen. Each answer is a line "done" on standard output.
//
//     draw STEP        bars of a run of 100 steps
//     validate BATCH   the same with a validation of 8 batches
//     raw TEXT         prints a line as any program would
//     print TEXT       prints a line with frugal::watch::print
//     throw            leaves the bars by an exception

#include <frugal/base/terminal.hpp>
#include <frugal/report/progress/bar.hpp>

#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>

namespace {

namespace watch = frugal::watch;

watch::BarLine line_at(std::uint64_t step) {
  return {.epoch = step / 25,
          .epochs = 4,
          .step = step,
          .total_steps = 100,
          .samples_per_second = 12345,
          .seconds_left = 187,
          .loss = 0.71309,
          .metric = "pr\u00e9cision",
          .best = 0.9013,
          .last = 0.8953,
          .memory_bytes = std::uint64_t{3} << 29U,
          .data_wait = 0.031,
          .in_epoch = watch::Share{step % 25, 25},
          .gauges = {{"dollars", 1.2345}, {"dollars_projected", 4.938}}};
}

void serve() {
  watch::Display display(stderr, watch::wants_colors());
  std::uint64_t step = 0;
  auto const draw = [&](watch::BarLine const& line) {
    display.draw(watch::bar_lines(line, watch::terminal_size(stderr).columns));
  };
  for (std::string text; std::getline(std::cin, text);) {
    std::string const what = text.substr(0, text.find(' '));
    std::string const rest = what.size() < text.size() ? text.substr(what.size() + 1) : "";
    if (what == "draw") {
      step = std::stoull(rest);
      draw(line_at(step));
    } else if (what == "validate") {
      watch::BarLine line = line_at(step);
      line.validation = watch::Share{std::stoull(rest), 8};
      draw(line);
    } else if (what == "raw") {
      std::fprintf(stderr, "%s\n", rest.c_str());
    } else if (what == "print") {
      watch::print(rest);
    } else if (what == "throw") {
      throw std::runtime_error("broken");
    }
    std::cout << "done" << std::endl;
  }
}

}  // namespace

int main() {
  try {
    serve();
  } catch (std::runtime_error const& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    std::cout << "done" << std::endl;
    return 1;
  }
  return 0;
}
