// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/cluster/communicator/guarded_store.hpp>
#include <frugal/cluster/communicator/rank_watch.hpp>
#include <frugal/cluster/communicator/rendezvous.hpp>
#include <frugal/cluster/world.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

[[noreturn]] inline void refuse_rank(int rank, int size, std::string const& where,
                                     std::string const& what, std::string const& why) {
  throw ClusterError({.what = "rank " + std::to_string(rank) + " of " + std::to_string(size) +
                              " could not " + what,
                      .where = where,
                      .why = why,
                      .fix = "Read the output of the rank that is named, and start all again."});
}

/// The number of machines of these processes.
inline unsigned machines_of(std::vector<std::string> const& hosts) {
  std::set<std::string> names;
  for (std::string const& each : hosts) names.insert(each.substr(0, each.rfind(", process ")));
  return static_cast<unsigned>(names.size());
}

/// SettingsError unless these are ranks of a world of `size`, each of them once and the own one among them.
inline void require_group(std::vector<int> const& ranks, int own, int size,
                          std::string const& name) {
  std::set<int> const distinct(ranks.begin(), ranks.end());
  if (distinct.size() == ranks.size() && distinct.contains(own) && *distinct.begin() >= 0 &&
      *distinct.rbegin() < size)
    return;
  std::string text;
  for (int const each : ranks) text += (text.empty() ? "" : ", ") + std::to_string(each);
  throw SettingsError(
      {.what = "the ranks of a group are '" + text + "', of " + std::to_string(size),
       .where = "rank " + std::to_string(own) + ", '" + name + "'",
       .why = "each rank of a group is there once, and calls it",
       .fix = "Name the ranks of this group, the own one among them."});
}

/// The processes of a world, all of which have come.
struct Meeting {
  c10::intrusive_ptr<c10d::Store> store{};
  std::shared_ptr<RankWatch> watch{};
  std::vector<std::string> hosts{};

  /// Waits for them at a store. The beats begin before: one that is killed meanwhile is named.
  static Meeting of(c10::intrusive_ptr<c10d::Store> open, World const& world,
                    WaitLimits const& limits) {
    auto const guarded = c10::make_intrusive<GuardedStore>(
        c10::make_intrusive<c10d::PrefixStore>(GuardedStore::fingerprint(world.token), open),
        world.token.empty() ? "" : world.token + "/" + std::to_string(world.restart));
    guarded->setTimeout(limits.join);
    Meeting met;
    met.store = guarded;
    met.hosts.assign(static_cast<std::size_t>(world.size), "not here yet");
    auto const look = [rank = world.rank, size = world.size](RankWatch& watch) {
      std::string const ended = watch.noticed(watch.look_for_ended());
      if (ended.empty()) return;
      watch.broke(ended);
      refuse_rank(rank, size, this_process(), "meet the others", ended);
    };
    try {
      if (world.rank == 0) open->set("token", GuardedStore::fingerprint(world.token));
      met.watch = std::make_shared<RankWatch>(guarded->clone(), world.rank, met.hosts,
                                              world.rank == 0 && !world.agent_has_store,
                                              WatchTimes{.grace = limits.hung});
      met.watch->meets(/*begins=*/true);
      meet(
          *guarded, world, limits.join,
          [&](int rank, Arrival const& one) {
            met.hosts[static_cast<std::size_t>(rank)] = one.host;
            met.watch->arrived(rank, one.host, one.owner);
          },
          [&] {
            require_token(*open, world);
            look(*met.watch);
          });
    } catch (Error const&) {
      throw;
    } catch (std::exception const& error) {
      refuse_rank(world.rank, world.size, this_process(), "meet the others",
                  "the store at " + world.host + ":" + std::to_string(world.port) +
                      " does not answer any more: rank 0, or the launcher, has ended (" +
                      first_line(error) + ")");
    }
    met.watch->meets(/*begins=*/false);
    // A connection waits in the store for the addresses of all. Groups have the store, too, and may
    // outlive the world's communicator.
    guarded->in_waits([look, weak = std::weak_ptr<RankWatch>(met.watch)] {
      if (auto const watch = weak.lock()) look(*watch);
    });
    if (machines_of(met.hosts) > 1) {
      require_reachable(exchange_addresses(*guarded, world, limits.join), met.hosts, world.text());
    }
    return met;
  }
};

/// A text of rank 0 that the others get although some may have ended, or the run is over by a verdict.
class FirstWord {
 public:
  /// `first`: rank 0 of this group, in the world. `limit`: of each wait (WaitLimit).
  FirstWord(c10d::Store& store, RankWatch& watch, World const& world, int first,
            std::chrono::milliseconds limit)
      : store_(store), watch_(watch), world_(world), first_(first), limit_(limit) {}

  /// Of rank 0. Returns when the others have read it, because the process that serves the store may end
  /// at once; not later than the limit, and not for those that have ended.
  template <class RankInWorld>
  void say(std::string const& key, std::string const& text, RankInWorld&& rank_in_world) {
    try {
      store_.set(key, text);
      WaitLimit limit = watch_.limit_of(limit_);
      for (int rank = 1; rank < world_.size; ++rank) {
        std::string const read = key + "/" + std::to_string(rank);
        if (!wait(rank_in_world(rank), limit, [&] { return store_.check({read}); })) return;
      }
    } catch (std::exception const&) {
      return;  // the store is gone; what rank 0 has saved is saved
    }
  }
  /// Of the others; nothing if it does not come, and then `why`.
  std::optional<std::string> hear(std::string const& key, std::string& why) {
    try {
      WaitLimit limit = watch_.limit_of(limit_);
      bool const in_time = wait(first_, limit, [&] { return store_.check({key}); });
      if (store_.check({key})) {
        std::string found = store_.get_to_str(key);
        store_.set(key + "/" + std::to_string(world_.rank), "read");
        return found;
      }
      why = in_time ? watch_.find()
                    : watch_.noticed(watch_.accuse(
                          first_, "said what it has saved for " + seconds_text(limit_)));
    } catch (std::exception const& error) {
      why = RankWatch::why(error) + " (" + first_line(error) + ")";
    }
    return std::nullopt;
  }

 private:
  /// Until `came`, or the rank has ended; false if the limit is over.
  template <class Came>
  bool wait(int rank_in_world, WaitLimit& limit, Came&& came) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds pause(50);
    for (auto before = Clock::now(); !came();) {
      if (watch_.ended_ranks()[static_cast<std::size_t>(rank_in_world)]) return true;
      std::this_thread::sleep_for(pause);
      auto const passed =
          std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - before);
      before += passed;
      limit.pass(std::min(passed, 20 * pause));  // this process may have been stopped
      if (limit.wants_look() && limit.is_over(watch_.busy_times())) return came();
    }
    return true;
  }

  c10d::Store& store_;
  RankWatch& watch_;
  World const& world_;
  int first_;
  std::chrono::milliseconds limit_;
};

/// A wait whose limit is counted elsewhere.
inline constexpr std::chrono::milliseconds no_limit = std::chrono::hours(24 * 365);

#ifdef USE_C10D_NCCL
inline c10::intrusive_ptr<c10d::Backend> nccl_group(c10::intrusive_ptr<c10d::Store> store, int rank,
                                                    int size, WaitLimits const& limits) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = limits.collective;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(
      c10::make_intrusive<c10d::PrefixStore>("nccl", std::move(store)), rank, size,
      std::move(options));
}
#endif

/// Connects a rank to all others, within the time that they have to come. `store`: of this group alone.
inline c10::intrusive_ptr<c10d::Backend> gloo_backend(c10::intrusive_ptr<c10d::Store> store,
                                                      World const& world, RankWatch& watch,
                                                      std::chrono::milliseconds join) {
  auto options = c10d::ProcessGroupGloo::Options::create();
  // Of one connection. Addresses are awaited in the store, which has its own limit.
  options->timeout = std::min<std::chrono::milliseconds>(join, std::chrono::seconds(45));
  // Python's variable, for machines with several networks. Otherwise that which leads to rank 0.
  char const* const interface = std::getenv("GLOO_SOCKET_IFNAME");
  options->devices.push_back(interface != nullptr
                                 ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                                 : c10d::ProcessGroupGloo::createDeviceForHostname(
                                       local_address_towards(world.host, world.port)));
  struct Connects {
    RankWatch& watch;
    explicit Connects(RankWatch& of) : watch(of) { watch.connects(true); }
    Connects(Connects const&) = delete;
    Connects& operator=(Connects const&) = delete;
    ~Connects() { watch.connects(false); }
  };
  Connects const connecting(watch);
  auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(std::move(store), world.rank, world.size,
                                                           std::move(options));
  // Waits have their own limit, which does not run while a rank is busy.
  group->setTimeout(no_limit);
  return group;
}

}  // namespace frugal::detail
