// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/communicator/meeting.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstdlib>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void refuse_rank(int rank, int size, std::string const& where,
                               std::string const& what, std::string const& why) {
  throw ClusterError({.what = "rank " + std::to_string(rank) + " of " + std::to_string(size) +
                              " could not " + what,
                      .where = where,
                      .why = why,
                      .fix = "Read the output of the rank that is named, and start all again."});
}

FRUGAL_INLINE void require_group(std::vector<int> const& ranks, int own, int size,
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

FRUGAL_INLINE Meeting Meeting::of(c10::intrusive_ptr<c10d::Store> open, World const& world,
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

FRUGAL_INLINE std::optional<std::string> FirstWord::hear(std::string const& key, std::string& why) {
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

#ifdef USE_C10D_NCCL
FRUGAL_INLINE c10::intrusive_ptr<c10d::Backend> nccl_group(c10::intrusive_ptr<c10d::Store> store,
                                                           int rank, int size,
                                                           WaitLimits const& limits) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = limits.collective;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(
      c10::make_intrusive<c10d::PrefixStore>("nccl", std::move(store)), rank, size,
      std::move(options));
}
#endif

FRUGAL_INLINE c10::intrusive_ptr<c10d::Backend> gloo_backend(c10::intrusive_ptr<c10d::Store> store,
                                                             World const& world, RankWatch& watch,
                                                             std::chrono::milliseconds join) {
  auto options = c10d::ProcessGroupGloo::Options::create();
  // Of one connection, for which gloo waits five times as long: RankWatch sees earlier that a rank has ended.
  // Addresses are awaited in the store, which has its own limit.
  options->timeout = std::min<std::chrono::milliseconds>(join, std::chrono::seconds(45));
  // Python's variable, for machines with several networks. Otherwise that which leads to rank 0.
  char const* const interface = std::getenv("GLOO_SOCKET_IFNAME");
  options->devices.push_back(interface != nullptr
                                 ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                                 : c10d::ProcessGroupGloo::createDeviceForHostname(
                                       local_address_towards(world.host, world.port)));
  struct Connects {
    RankWatch& watch;
    explicit Connects(RankWatch& of) : watch(of) { watch.connects(RankWatch::Connections::open); }
    Connects(Connects const&) = delete;
    Connects& operator=(Connects const&) = delete;
    ~Connects() { watch.connects(RankWatch::Connections::rest); }
  };
  Connects const connecting(watch);
  auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(std::move(store), world.rank, world.size,
                                                           std::move(options));
  // Waits have their own limit, which does not run while a rank is busy.
  group->setTimeout(no_limit);
  return group;
}

}  // namespace frugal::detail
