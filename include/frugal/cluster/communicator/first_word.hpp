// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <thread>

#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/cluster/communicator/rank_watch.hpp>
#include <frugal/cluster/communicator/rendezvous.hpp>
#include <frugal/cluster/world.hpp>

namespace frugal::detail {

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

}  // namespace frugal::detail
