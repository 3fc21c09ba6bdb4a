// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/cluster/communicator/guarded_store.hpp>
#include <frugal/cluster/communicator/rank_watch.hpp>
#include <frugal/cluster/communicator/rendezvous.hpp>
#include <frugal/cluster/world.hpp>

namespace frugal::detail {

[[noreturn]] void refuse_rank(int rank, int size, std::string const& where, std::string const& what,
                              std::string const& why);

/// The number of machines of these processes.
inline unsigned machines_of(std::vector<std::string> const& hosts) {
  std::set<std::string> names;
  for (std::string const& each : hosts) names.insert(each.substr(0, each.rfind(", process ")));
  return static_cast<unsigned>(names.size());
}

/// SettingsError unless these are ranks of a world of `size`, each of them once and the own one among them.
void require_group(std::vector<int> const& ranks, int own, int size, std::string const& name);

/// The processes of a world, all of which have come.
struct Meeting {
  c10::intrusive_ptr<c10d::Store> store{};
  std::shared_ptr<RankWatch> watch{};
  std::vector<std::string> hosts{};

  /// Waits for them at a store. The beats begin before: one that is killed meanwhile is named.
  static Meeting of(c10::intrusive_ptr<c10d::Store> open, World const& world,
                    WaitLimits const& limits);
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
  std::optional<std::string> hear(std::string const& key, std::string& why);

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
c10::intrusive_ptr<c10d::Backend> nccl_group(c10::intrusive_ptr<c10d::Store> store, int rank,
                                             int size, WaitLimits const& limits);
#endif

/// Connects a rank to all others, within the time that they have to come. `store`: of this group alone.
c10::intrusive_ptr<c10d::Backend> gloo_backend(c10::intrusive_ptr<c10d::Store> store,
                                               World const& world, RankWatch& watch,
                                               std::chrono::milliseconds join);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/communicator/meeting.ipp>
#endif
