// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

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

std::string this_process();

inline std::string seconds_text(std::chrono::milliseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

/// The store at which the processes of a world meet. Rank 0 serves it, unless the launcher does.
/// Keys of an earlier start (World::restart) are out of reach.
c10::intrusive_ptr<c10d::Store> store_of(World const& world, WaitLimits const& limits);

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
void require_token(c10d::Store& open, World const& world);

/// The address of this machine on the network that leads to a host: that which the kernel would
/// send from. Nothing is sent. Throws ClusterError if the host has no address, or no way leads there.
std::string local_address_towards(std::string const& host, std::uint16_t port);

/// What a rank says of its address.
struct RankAddress {
  std::string address{};  ///< or the name of an interface
  std::string network{};  ///< which loopback it has; empty: not known
};
/// Processes with the same one reach each other by loopback, whatever their machine is called.
inline std::string this_network() {
  std::error_code failed;
  std::string const space = std::filesystem::read_symlink("/proc/self/ns/net", failed).string();
  std::string const boot = LockOwner::here().boot;
  return failed || boot.empty() ? std::string() : boot + ' ' + space;
}

/// ClusterError if a rank gives the others an address that leads each of them to itself: they would wait for
/// it, and none would know why. `hosts`: where they run. All are at such addresses where they are on one
/// machine under several names.
void require_reachable(std::vector<RankAddress> const& all, std::vector<std::string> const& hosts,
                       std::string const& where);

/// The address that each rank gives the others; all call it. `store`: at which all have met.
std::vector<RankAddress> exchange_addresses(c10d::Store& store, World const& world,
                                            std::chrono::milliseconds limit);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/communicator/rendezvous.ipp>
#endif
