// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/cluster/world.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// How long the processes of a world wait for each other.
struct WaitLimits {
  std::chrono::milliseconds join = std::chrono::minutes(5);         ///< for all to start
  std::chrono::milliseconds collective = std::chrono::minutes(10);  ///< in an exchange
  /// After the others have given up: for a process that does not notice, before it is ended.
  std::chrono::milliseconds hung = std::chrono::minutes(1);
};

namespace detail {

/// The first line of an exception's text, without LibTorch's stack.
inline std::string first_line(std::exception const& error) {
  std::string_view const text = error.what();
  return std::string(text.substr(0, text.find('\n')));
}

inline std::string this_process() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name = {"unknown host"};
  return std::string(name.data()) + ", process " + std::to_string(::getpid());
}

inline std::string seconds_text(std::chrono::milliseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

/// The store at which the processes of a world meet. Rank 0 serves it, unless the launcher does.
/// Keys of an earlier start (World::restart) are out of reach.
inline c10::intrusive_ptr<c10d::Store> store_of(World const& world, WaitLimits const& limits) {
  c10d::TCPStoreOptions options;
  options.port = world.port;
  options.isServer = world.rank == 0 && !world.agent_has_store;
  options.numWorkers = static_cast<std::size_t>(world.size);
  options.waitWorkers = false;  // meet() waits, and says for whom
  options.timeout = limits.join;
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(world.host, options);
    return c10::make_intrusive<c10d::PrefixStore>("frugal/" + std::to_string(world.restart),
                                                  std::move(store));
  } catch (std::exception const& error) {
    std::string const place = world.host + ":" + std::to_string(world.port);
    std::string const text = first_line(error);
    if (options.isServer) {
      throw ClusterError(
          {.what = "rank 0 cannot serve the store at " + place,
           .where = world.text(),
           .why = text,
           .fix = "Give each run a free port (MASTER_PORT, torchrun --master-port), and start rank "
                  "0 on the machine that MASTER_ADDR names."});
    }
    throw ClusterError(
        {.what = "rank " + std::to_string(world.rank) + " finds no store at " + place,
         .where = world.text(),
         .why = "waited " + seconds_text(limits.join) + "; " + text,
         .fix = "Check that rank 0 runs, that MASTER_ADDR and MASTER_PORT are its, "
                "and that no firewall is between the machines."});
  }
}

/// Waits until every rank has come; returns where each runs ("node7, process 4711"). Throws
/// ClusterError, in every rank that has come, with the ranks that have not.
inline std::vector<std::string> meet(c10d::Store& store, World const& world,
                                     std::chrono::milliseconds limit) {
  auto const key = [](int rank) { return "here/" + std::to_string(rank); };
  if (store.add("claims/" + std::to_string(world.rank), 1) != 1) {
    throw ClusterError(
        {.what = "rank " + std::to_string(world.rank) + " is taken",
         .where = world.text(),
         .why = "another process has come to this store with the same rank: two runs have one "
                "port, or one run was started twice",
         .fix = "Give each run a port of its own (MASTER_PORT, torchrun --master-port)."});
  }
  store.set(key(world.rank), this_process());
  auto const end = std::chrono::steady_clock::now() + limit;
  std::vector<std::string> hosts(static_cast<std::size_t>(world.size));
  std::string missing;
  int missing_ranks = 0;
  for (int rank = 0; rank < world.size; ++rank) {
    auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    try {
      // A wait of no time at all would wait for ever.
      store.wait({key(rank)}, std::max(left, std::chrono::milliseconds(10)));
      hosts[static_cast<std::size_t>(rank)] = store.get_to_str(key(rank));
    } catch (std::exception const&) {
      if (++missing_ranks <= 8) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    }
  }
  if (missing_ranks == 0) return hosts;
  if (missing_ranks > 8) missing += " and " + std::to_string(missing_ranks - 8) + " more";
  throw ClusterError(
      {.what = (missing_ranks == 1 ? "rank " : "ranks ") + missing + " of " +
               std::to_string(world.size) + " did not come within " + seconds_text(limit),
       .where = world.text(),
       .why = "the launcher has not started them, they ended before, or they wait elsewhere",
       .fix = "Read their output, and check that all were started with the same MASTER_ADDR, "
              "MASTER_PORT and WORLD_SIZE."});
}

}  // namespace detail
}  // namespace frugal
