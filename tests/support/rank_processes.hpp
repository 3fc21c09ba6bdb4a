// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <frugal/base/child_process.hpp>

#include "sockets.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

/// Ranks as processes: this program again, with the case "a rank of a world" of the same file alone. LibTorch has one
/// generator for all threads, so ranks that draw random numbers cannot be threads.
namespace frugal_test::support::rank_processes {

/// What the case of a rank prints; nothing if it throws before.
inline void answer(std::string const& result) { std::cout << "RESULT " << result << std::endl; }

/// The name of the job that this process shall do.
inline std::string job() { return std::getenv("FRUGAL_TEST_JOB"); }

/// What each of `size` ranks has answered. `more`: variables for all of them. The answer of the rank
/// that may be silent is empty if it has none.
inline std::vector<std::string> run(
    std::string const& name, int size, std::vector<std::string> const& more = {},
    int may_be_silent = -1, std::source_location const& caller = std::source_location::current()) {
  std::string const self = std::filesystem::read_symlink("/proc/self/exe");
  Port free;
  free.close();
  std::vector<std::unique_ptr<frugal::detail::ChildProcess>> processes;
  for (int rank = 0; rank < size; ++rank) {
    std::vector<std::string> command{"env",
                                     "RANK=" + std::to_string(rank),
                                     "WORLD_SIZE=" + std::to_string(size),
                                     "MASTER_ADDR=127.0.0.1",
                                     "MASTER_PORT=" + std::to_string(free.number),
                                     "OMP_NUM_THREADS=1",
                                     "FRUGAL_TEST_JOB=" + name};
    command.insert(command.end(), more.begin(), more.end());
    command.insert(command.end(), {self, "--no-skip", "--test-case=a rank of a world",
                                   "--source-file=" + std::string(caller.file_name())});
    processes.push_back(std::make_unique<frugal::detail::ChildProcess>(
        command, frugal::detail::ProcessLimits{.patience = std::chrono::seconds(120)}));
  }
  std::vector<std::string> results;
  for (auto& process : processes) {
    frugal::detail::ProcessEnd const end = process->wait();
    std::size_t const begin = end.said.find("RESULT ");
    CAPTURE(end.said);
    if (begin == std::string::npos && static_cast<int>(results.size()) == may_be_silent) {
      results.emplace_back();
      continue;
    }
    REQUIRE(begin != std::string::npos);
    results.push_back(end.said.substr(begin, end.said.find('\n', begin) - begin));
  }
  return results;
}

}  // namespace frugal_test::support::rank_processes
