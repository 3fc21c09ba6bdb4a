// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/cluster/communicator/guarded_store.hpp>
#include <frugal/cluster/world.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// How long the processes of a world wait for each other.
struct WaitLimits {
  /// For all to start. Twice as long if rank 0 ends while another one connects to its store: LibTorch begins again.
  std::chrono::milliseconds join = std::chrono::minutes(5);
  /// In an exchange. Does not run while a rank reads or writes a checkpoint. NCCL knows nothing of that.
  std::chrono::milliseconds collective = std::chrono::minutes(10);
  /// After the others have given up: for a process that does not notice, before it is ended.
  std::chrono::milliseconds hung = std::chrono::minutes(1);
};

namespace detail {

/// The first line of an exception's text, without LibTorch's stack.
inline std::string first_line(std::exception const& error) {
  std::string_view const text = error.what();
  return std::string(text.substr(0, text.find('\n')));
}

/// Text of another process: nothing in it moves a terminal's cursor.
inline std::string printable(std::string text, std::size_t most = 1000) {
  if (text.size() > most) text.resize(most);
  for (char& each : text) {
    if (static_cast<unsigned char>(each) < 0x20 || each == 0x7f) each = ' ';
  }
  return text;
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
    // From here on waits are GuardedStore's: this is for a value that someone removes while it is read, and
    // for further connections.
    store->setTimeout(std::chrono::seconds(45));
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

/// What a rank says of itself when it comes.
struct Arrival {
  std::string host{};                ///< "node7, process 4711"
  std::optional<LockOwner> owner{};  ///< its process
};

/// Waits until every rank has come; returns what each says. Throws ClusterError, in every rank that has
/// come, with the ranks that have not. `arrived(rank, Arrival)` is called for each as it comes, and
/// `look()` from time to time: it may throw.
template <class Arrived, class Look>
std::vector<Arrival> meet(c10d::Store& store, World const& world, std::chrono::milliseconds limit,
                          Arrived&& arrived, Look&& look) {
  auto const key = [](int rank) { return "here/" + std::to_string(rank); };
  if (store.add("claims/" + std::to_string(world.rank), 1) != 1) {
    throw ClusterError(
        {.what = "rank " + std::to_string(world.rank) + " is taken",
         .where = world.text(),
         .why = "another process has come to this store with the same rank: two runs have one "
                "port, one run was started twice, or a launcher that serves the store has started "
                "the processes anew without counting it",
         .fix =
             "Give each run a port of its own (MASTER_PORT, torchrun --master-port); for torchrun "
             "with machines that join, set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1."});
  }
  store.set(key(world.rank), this_process() + '\n' + LockOwner::here().text());
  using Clock = std::chrono::steady_clock;
  auto const end = Clock::now() + limit;
  auto looked = Clock::now();
  std::vector<Arrival> all(static_cast<std::size_t>(world.size));
  std::vector<int> away;
  for (int rank = 0; rank < world.size; ++rank) away.push_back(rank);
  std::chrono::milliseconds pause(1);
  while (true) {
    std::erase_if(away, [&](int rank) {
      if (!store.check({key(rank)})) return false;
      std::string const text = store.get_to_str(key(rank));
      std::size_t const line = std::min(text.find('\n'), text.size());
      Arrival& one = all[static_cast<std::size_t>(rank)];
      one.host = printable(text.substr(0, line), 300);
      if (line != text.size() && text.size() < 2048)
        one.owner = LockOwner::parse(text.substr(line + 1));
      arrived(rank, one);
      return true;
    });
    if (away.empty() || Clock::now() > end) break;
    if (Clock::now() - looked > std::chrono::milliseconds(500)) {
      look();
      looked = Clock::now();
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(100));
  }
  if (away.empty()) return all;
  std::string missing;
  auto const missing_ranks = away.size();
  for (std::size_t i = 0; i < std::min<std::size_t>(missing_ranks, 8); ++i) {
    missing += (missing.empty() ? "" : ", ") + std::to_string(away[i]);
  }
  if (missing_ranks > 8) missing += " and " + std::to_string(missing_ranks - 8) + " more";
  throw ClusterError(
      {.what = (missing_ranks == 1 ? "rank " : "ranks ") + missing + " of " +
               std::to_string(world.size) + " did not come within " + seconds_text(limit),
       .where = world.text(),
       .why = "the launcher has not started them, they ended before, or they wait elsewhere",
       .fix = "Read their output, and check that all were started with the same MASTER_ADDR, "
              "MASTER_PORT and WORLD_SIZE."});
}
inline std::vector<Arrival> meet(c10d::Store& store, World const& world,
                                 std::chrono::milliseconds limit) {
  return meet(store, world, limit, [](int, Arrival const&) {}, [] {});
}

/// In a look of meet(): ClusterError if rank 0 has another token. `open`: the store without a guard.
inline void require_token(c10d::Store& open, World const& world) {
  std::string const own = GuardedStore::fingerprint(world.token);
  std::string const name = "token";
  if (!open.check({name})) return;
  std::string const of_first = open.get_to_str(name);
  if (of_first == own) return;
  throw ClusterError(
      {.what = "rank " + std::to_string(world.rank) + " and rank 0 have different tokens",
       .where = world.text(),
       .why = world.token.empty()  ? "this rank has none"
              : of_first == "none" ? "rank 0 has none"
                                   : "a process without the run's token is refused",
       .fix = "Give all processes one FRUGAL_CLUSTER_TOKEN, or one FRUGAL_CLUSTER_TOKEN_FILE."});
}

}  // namespace detail
}  // namespace frugal
