// SPDX-License-Identifier: Apache-2.0
// Whole trainers, killed and damaged; LibTorch is loaded once, and each start is a fork.
//
//   fault_train random [--runs N] [--seed S] [--first I]   killed at random instants
//   fault_train TEST --json FILE                           and the figures to a file
//
// Exit codes: 0 all held; 1 something did not, which is said on stderr; 2 wrong arguments.
#include "train/random.hpp"

#include <ATen/Parallel.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  using namespace frugal_test::fault;
  std::vector<std::string> const given(argv + 1, argv + argc);
  std::map<std::string, std::string> options{
      {"--runs", "25"}, {"--seed", "20240607"}, {"--first", "0"}, {"--json", ""}};
  bool known = given.size() % 2 == 1;
  for (std::size_t i = 1; i + 1 < given.size(); i += 2) {
    known = known && options.contains(given[i]);
    options[given[i]] = given[i + 1];
  }
  auto const number = [&](char const* name) { return std::stoull(options.at(name)); };
  std::map<std::string, std::function<nlohmann::json()>> const tests{
      {"random", [&] { return random_kills(number("--first"), number("--runs"), number("--seed")); }},
  };
  if (!known || !tests.contains(given.front())) {
    std::cerr << "fault_train random [--runs N] [--seed S] [--first I] [--json FILE]\n";
    return 2;
  }
  at::set_num_threads(1);  // a pool of threads would not outlive a fork
  try {
    nlohmann::json const figures = tests.at(given.front())();
    std::cout << figures.dump(1) << '\n';
    if (!options.at("--json").empty()) std::ofstream(options.at("--json")) << figures << '\n';
    return 0;
  } catch (std::exception const& failure) {
    std::cerr << given.front() << ": " << failure.what() << '\n';
    return 1;
  }
}
