// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/communicator.hpp>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

/// Ranks as threads of one process, which meet at a store in memory and talk over the loopback device.
namespace frugal_test::support::ranks {

inline frugal::World place(int rank, int size) {
  frugal::World world;
  world.rank = rank;
  world.size = size;
  world.launcher = "threads";
  return world;
}

/// LibTorch's flight recorder writes to a map of its groups without a lock: rank per thread is a use that
/// it does not know.
inline int const no_recorder = ::setenv("TORCH_FR_BUFFER_SIZE", "0", 1);

inline constexpr frugal::WaitLimits short_limits{.join = std::chrono::seconds(60),
                                                 .collective = std::chrono::seconds(60)};

/// Calls `body(communicator)` in each; returns the texts of what they threw, empty for none.
template <class Body>
std::vector<std::string> run(int size, Body const& body,
                             frugal::WaitLimits const& limits = short_limits) {
  auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        auto all = std::make_shared<frugal::Communicator>(store, place(rank, size), limits);
        body(all);
      } catch (std::exception const& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  return errors;
}

/// No rank has thrown.
inline bool none(std::vector<std::string> const& errors) {
  for (std::string const& error : errors) {
    if (!error.empty()) return false;
  }
  return true;
}

}  // namespace frugal_test::support::ranks
