// SPDX-License-Identifier: Apache-2.0
// Whole trainers under kills and damage; LibTorch is loaded once, and each start is a fork.
//
//   fault_train random   runs that are killed at random instants, and started again
//   fault_train calls    saves that are broken at one call to the file system after another
//   fault_train damage   newest checkpoints with one bit flipped, or cut off
//   fault_train cycles   saves and resumes in one process
//   fault_train self     finds a job that does not resume exactly
//
// Exit codes: 0 all checks passed; 1 a check failed, reported on stderr; 2 wrong arguments.
#include "train/calls.hpp"
#include "train/cycles.hpp"
#include "train/damage.hpp"
#include "train/random.hpp"

#include <ATen/Parallel.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  using namespace frugal_test::fault;
  std::string test;
  std::string shim;
  std::string json;
  std::uint64_t runs = 25;
  std::uint64_t seed = 1;
  std::uint64_t first = 0;
  std::uint64_t stride = 1;
  std::uint64_t positions = 400;
  std::uint64_t count = 1000;
  std::map<std::string, std::function<nlohmann::json()>> const tests{
      {"random", [&] { return random_kills(first, runs, seed); }},
      {"calls", [&] { return broken_calls(stride, first); }},
      {"damage", [&] { return Damages().run(positions); }},
      {"cycles", [&] { return cycles(count); }},
      {"self", [&] { return finds_what_forgets(seed); }},
  };
  CLI::App app("Whole trainers, killed and damaged");
  app.add_option("test", test, "random, calls, damage, cycles or self")->required();
  app.add_option("--json", json, "a file for the figures");
  app.add_option("--runs", runs, "random: how many runs");
  app.add_option("--seed", seed, "random: what the kills are drawn from");
  app.add_option("--first", first, "random, calls: the number of the first");
  app.add_option("--stride", stride, "calls: every so many of them is tried");
  app.add_option("--shim", shim, "calls: libfrugal_fault.so");
  app.add_option("--positions", positions, "damage: bits to flip; half as many cuts");
  app.add_option("--count", count, "cycles: how many");
  CLI11_PARSE(app, argc, argv);
  // A sample, as in run.py: every N-th of the cases.
  if (char const* const sample = ::getenv("FRUGAL_FAULT_EVERY")) {
    std::uint64_t const every = std::max<std::uint64_t>(std::strtoull(sample, nullptr, 10), 1);
    runs = std::max<std::uint64_t>(runs / every, 1);
    stride *= every;
    positions = std::max<std::uint64_t>(positions / every, 1);
    count = std::max<std::uint64_t>(count / every, 250);  // fewer would show no growth
  }
  if (!tests.contains(test)) {
    std::cerr << "there is no test " << test << "; see --help\n";
    return 2;
  }
  if (!shim.empty() && ::getenv("FRUGAL_FAULT_LATER") == nullptr) {
    ::setenv("FRUGAL_FAULT_LATER", "1", 1);
    ::setenv("LD_PRELOAD", shim.c_str(), 1);
    ::execv("/proc/self/exe", argv);
    std::cerr << "cannot start itself again\n";
    return 2;
  }
  at::set_num_threads(1);  // a thread pool would not survive a fork
  try {
    nlohmann::json const figures = tests.at(test)();
    std::cout << figures.dump(1) << '\n';
    if (!json.empty()) std::ofstream(json) << figures << '\n';
    return 0;
  } catch (std::exception const& failure) {
    std::cerr << test << ": " << failure.what() << '\n';
    return 1;
  }
}
