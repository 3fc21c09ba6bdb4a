// SPDX-License-Identifier: Apache-2.0
// torch-free
// Writes a comparison of scripted figures for tests/interop/google_benchmark.py: PROGRAM FILE
// FACTOR multiplies every time by FACTOR.
#include <frugal/report/compare/comparison.hpp>

#include <cstddef>
#include <exception>
#include <iostream>
#include <string>

int main(int count, char** arguments) {
  if (count != 3) return 2;
  try {
    double const factor = std::stod(arguments[2]);
    frugal::Comparison made;
    made.repeats = 10;
    made.target = {.metric = "accuracy", .at_least = 0.8};
    made.dollars_per_hour = 1;
    for (char const* const name : {"AdamW", "AdamW + BF16"}) {
      frugal::ComparedRecipe row{.name = name};
      for (std::size_t repeat = 0; repeat < made.repeats; ++repeat) {
        double const step = 1e-3 * factor * (10 + static_cast<double>(repeat) / 10);
        frugal::Trial trial{.repeat = repeat,
                            .steps = 100,
                            .seconds = 100 * step,
                            .step_seconds = step,
                            .processor_seconds = 2 * step,
                            .metrics = {{"accuracy", 0.8}}};
        trial.reached = frugal::Trial::Reached{80, 8000, 80 * step};
        row.trials.push_back(trial);
      }
      made.rows.push_back(row);
    }
    made.rows.push_back({.name = "AdamW + FP16", .trials = {}, .error = "does not run here"});
    made.json(arguments[1]);
    return 0;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
