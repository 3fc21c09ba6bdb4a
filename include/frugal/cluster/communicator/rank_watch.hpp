// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/cluster/communicator/rank_place.hpp>
#include <frugal/cluster/communicator/rendezvous.hpp>
#include <frugal/cluster/communicator/wait_limit.hpp>

namespace frugal::detail {

struct WatchTimes {
  std::chrono::milliseconds beat = std::chrono::milliseconds(500);
  /// For a rank that makes no progress to notice a verdict.
  std::chrono::milliseconds grace = std::chrono::minutes(1);
  /// Without a beat until a rank has ended, where nothing else says so: a process may be stopped for a
  /// while, and a machine or its network busy.
  std::chrono::milliseconds silent = std::chrono::seconds(25);
};

/// Says which rank has ended, failed or hangs, when an exchange does not come about.
///
/// A thread writes to the store, every beat, where this rank is. Who finds an exchange broken reads
/// twice what all have written: the beat of a rank that has ended stands still, and a rank that hangs
/// has taken part in fewer exchanges than the others. The first verdict in the store is that of all.
///
/// A rank that does not notice the verdict during a run, because it hangs in its own code, is ended by
/// its thread: it would keep its GPU, and rank 0 the run's lock. One that is busy() does not hang: it
/// is ended only if it is busy for thirty times as long.
///
/// Threads  one calls at a time, busy() in any; the thread of the beats is its own.
class RankWatch {
 public:
  /// `store` must be this object's own: others may wait in it. `serves`: it ends with this process.
  RankWatch(c10::intrusive_ptr<c10d::Store> store, int rank, std::vector<std::string> hosts,
            bool serves = false, WatchTimes const& times = {})
      : store_(std::move(store)),
        rank_(rank),
        hosts_(std::move(hosts)),
        serves_(serves),
        times_(times) {
    store_->setTimeout(4 * times_.beat);
    owners_.resize(hosts_.size());
    silence_.resize(hosts_.size());
    write();
    look();
    thread_ = std::make_unique<PeriodicThread>(std::chrono::duration<double>(times_.beat).count(),
                                               [this] { beat(); });
  }
  RankWatch(RankWatch const&) = delete;
  RankWatch& operator=(RankWatch const&) = delete;
  ~RankWatch() {
    thread_->stop();
    go();
  }

  /// Some have not come yet, until meet() has found them all.
  void meets(bool begins) { has_met_ = !begins; }
  /// A rank has come. `owner`: its process, to find out by the system whether it has ended.
  void arrived(int rank, std::string host, std::optional<LockOwner> owner) {
    std::scoped_lock const lock(hosts_mutex_);
    hosts_[static_cast<std::size_t>(rank)] = std::move(host);
    owners_[static_cast<std::size_t>(rank)] = std::move(owner);
  }

  /// While the result lives, this rank reads or writes a checkpoint, which may take long: others wait for
  /// it without a limit, as long as it beats.
  [[nodiscard]] std::shared_ptr<void> busy() { return busier(1); }
  /// While the result lives, one that is busy waits for another one, so that the limit counts.
  [[nodiscard]] std::shared_ptr<void> idle() { return busier(-1); }
  /// Of each rank, for a WaitLimit; empty if the store does not answer: the wait has no reason to go on.
  std::vector<BusyTime> busy_times() {
    try {
      std::vector<BusyTime> all;
      for (Place const& each : read()) all.push_back({each.busy_time, each.busy != 0});
      return all;
    } catch (std::exception const&) {
      return {};
    }
  }
  /// Of a wait for the others.
  WaitLimit limit_of(std::chrono::milliseconds limit) const { return {limit, times_.beat}; }

  /// An exchange of this rank has failed. The others may be in the same one, so that a next one of this
  /// rank would be taken for it.
  void broke(std::string why) {
    std::scoped_lock const lock(mutex_);
    if (broken_.empty()) broken_ = std::move(why);
  }
  /// Why; empty while none has.
  std::string broken() {
    std::scoped_lock const lock(mutex_);
    return broken_;
  }

  /// From here on this rank is needed by the others.
  void enter_run() {
    change([this] { here_.state = State::runs; });
    write();
  }
  void leave_run() {
    change([this] {
      if (here_.state != State::failed) here_.state = State::left;
    });
    write();
    if (!seen_verdict().empty()) linger();
  }
  /// This rank takes part in nothing any more.
  void go() {
    change([this] {
      if (here_.state != State::failed) here_.state = State::gone;
    });
    write();
  }
  /// Connections are being made or closed. Gloo may hang there when another rank has ended, or its machine has
  /// vanished: then this process ends, too.
  void connects(bool begins) {
    change([&] { connects_ = begins; });
  }
  void at_step(std::uint64_t step) {
    change([&] { here_.step = step; });
  }
  /// Begins to wait for the other ranks in an exchange. `counts`: not if it is one of which some ranks
  /// make more than others.
  void enter(std::string what, bool counts = true) {
    change([&] {
      if (counts) ++here_.exchanges;
      here_.what = std::move(what);
      here_.waits = true;
    });
  }
  /// Likewise for one other rank, in a message that the others take no part in.
  void enter_link(std::string what) {
    change([&] {
      here_.what = std::move(what);
      here_.waits = true;
    });
  }
  void leave() {
    change([this] { here_.waits = false; });
  }
  /// While the result lives, `then` is called if there is a verdict or `limit` (WaitLimit) is over, by the
  /// thread of the beats, or at once.
  [[nodiscard]] auto on_verdict(std::function<void()> then, std::chrono::milliseconds limit) {
    bool is_over = false;
    {
      std::scoped_lock const lock(waiting_mutex_, mutex_);
      is_over = !verdict_.empty();
      if (!is_over) waiting_ = std::move(then);
      wait_limit_ = limit_of(limit);
      passed_ = Clock::now();
    }
    if (is_over) then();
    struct Ends {
      RankWatch* watch;
      explicit Ends(RankWatch* of) : watch(of) {}
      Ends(Ends const&) = delete;
      Ends& operator=(Ends const&) = delete;
      ~Ends() {
        std::scoped_lock const lock(watch->waiting_mutex_);
        watch->waiting_ = nullptr;
      }
    };
    return Ends(this);
  }
  /// This rank ends by an error of its own, which all others shall name.
  void fail(std::string const& text) noexcept {
    try {
      std::string const line = text.substr(0, text.find('\n'));
      change([&] {
        here_.state = State::failed;
        here_.what = line;
      });
      write();
      std::string const found =
          agree(name(rank_) + " failed at step " + std::to_string(here_.step) + ": " + line);
      std::scoped_lock const lock(mutex_);
      if (verdict_.empty()) verdict_ = found;  // leave_run() waits until the others have it
    } catch (std::exception const&) {
      // Its beats will stop.
    }
  }

  /// The verdict of the first rank that has found one; empty without. Quick.
  std::string verdict() {
    std::string found;
    {
      std::scoped_lock const lock(mutex_);
      if (verdict_.empty()) return {};
      here_.noticed = true;
      found = verdict_;
    }
    write();
    linger();
    return found;
  }
  /// Likewise, in a thread beside the one that ends for it.
  std::string seen_verdict() {
    std::scoped_lock const lock(mutex_);
    return verdict_;
  }
  /// Of each rank, whether it has ended, failed or left. For one that waits, and calls it again and again:
  /// a rank has ended if the system of this machine says so, or if it has been silent for long, in the
  /// eyes of a process that has not been stopped itself.
  std::vector<bool> ended_ranks() { return ended_in(read()); }
  /// For one that waits for the others, and calls it again and again: a verdict if there is one, or if one
  /// has ended, failed or left, and otherwise nothing.
  std::string look_for_ended() {
    if (std::string found = seen_verdict(); !found.empty()) return found;
    try {
      std::vector<Place> const now = read();
      std::vector<bool> const ended = ended_in(now);
      std::vector<Place> before = now;
      for (std::size_t rank = 0; rank < ended.size(); ++rank) {
        if (!ended[rank]) --before[rank].beats;
      }
      std::string const found = ended_of(before, now);
      return found.empty() ? std::string() : agree(found);
    } catch (std::exception const& error) {
      return why(error);
    }
  }
  /// In such a thread, after an exchange has failed here: a verdict if a rank has ended or failed, and
  /// otherwise nothing. Takes two and a half beats.
  std::string find_ended() {
    try {
      auto const [before, now] = look_twice();
      std::string const ended = ended_of(before, now);
      return ended.empty() ? std::string() : agree(ended);
    } catch (std::exception const& error) {
      return why(error);
    }
  }
  /// In such a thread: gives all the verdict that this rank ends because of an error of the store's.
  std::string ends_by(std::exception const& error) {
    try {
      return agree(name(rank_) + " ends: " + why(error));
    } catch (std::exception const&) {
      return why(error);
    }
  }
  /// In such a thread: gives all the verdict that a rank has not done `what` for so long.
  std::string accuse(int rank, std::string const& what) {
    try {
      return agree(name(rank) + " has not " + what);
    } catch (std::exception const& error) {
      return why(error);
    }
  }
  /// This rank ends with a verdict that such a look has found. Not before it has: the process that serves
  /// the store may end then.
  std::string noticed(std::string verdict) {
    if (verdict.empty()) return verdict;
    change([this] { here_.noticed = true; });
    write();
    linger();
    return verdict;
  }
  /// Finds one, after an exchange has failed here.
  std::string find() {
    change([this] { here_.looks = true; });
    write();
    try {
      auto const [before, now] = look_twice();
      return noticed(agree(judge(before, now)));
    } catch (std::exception const& error) {
      return why(error);
    }
  }

  /// Of what a look at the store has thrown.
  static std::string why(std::exception const& error) {
    auto const* known = dynamic_cast<Error const*>(&error);
    if (known == nullptr) return std::string(no_store);
    Fault const& fault = known->fault();
    return fault.what + " (" + fault.where + "): " + fault.why;
  }

 private:
  std::shared_ptr<void> busier(int by) {
    auto const add = [this](int more) {
      change([&] {
        auto const now = Clock::now();
        if (here_.busy > 0) busy_before_ += now - busy_since_;
        busy_since_ = now;
        here_.busy += more;
      });
      write();
    };
    add(by);
    return {nullptr, [add, by](void*) { add(-by); }};
  }

  using Clock = std::chrono::steady_clock;
  static constexpr std::string_view no_store =
      "the store does not answer: the process that serves it has ended (rank 0, or the launcher)";
  static constexpr int most_busy = 30;  ///< times the grace of one that is not
  using Place = RankPlace;
  using State = RankPlace::State;
  std::vector<bool> ended_in(std::vector<Place> const& now) {
    std::vector<bool> ended;
    std::scoped_lock const lock(hosts_mutex_);
    auto const at = Clock::now();
    auto const passed = std::min<Clock::duration>(at - looked_at_, 2 * times_.beat);
    looked_at_ = at;
    for (std::size_t rank = 0; rank < now.size(); ++rank) {
      Silence& silence = silence_[rank];
      bool const beats = now[rank].beats != silence.beats;
      silence.passed = beats ? Clock::duration::zero() : silence.passed + passed;
      silence.beats = now[rank].beats;
      bool const is_dead = silence.passed >= 2 * times_.beat && owners_[rank] &&
                           owners_[rank]->life() == LockOwner::Life::dead;
      State const state = now[rank].state;
      ended.push_back(static_cast<int>(rank) != rank_ &&
                      (state == State::failed || state == State::gone || is_dead ||
                       (now[rank].beats != 0 && silence.passed >= times_.silent)));
    }
    return ended;
  }
  struct Silence {
    std::uint64_t beats = 0;
    Clock::duration passed{};
  };

  static std::string key(int rank) { return "watch/" + std::to_string(rank); }
  std::string name(int rank) const {
    std::scoped_lock const lock(hosts_mutex_);
    return "rank " + std::to_string(rank) + " (" + hosts_[static_cast<std::size_t>(rank)] + ")";
  }

  /// Changes what the next beat says. The run has moved.
  template <class Change>
  void change(Change&& change) {
    std::scoped_lock const lock(mutex_);
    change();
    moved_ = Clock::now();
  }
  /// Without the lock: the store may be far away. In the order of the texts: a beat on its way shall not
  /// replace what the rank has said since.
  void write() {
    std::scoped_lock const one_text(write_mutex_);
    std::string text;
    {
      std::scoped_lock const lock(mutex_);
      if (store_is_gone_) return;
      auto const now = Clock::now();
      auto const in = [](Clock::duration time) {
        return static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::microseconds>(time).count());
      };
      here_.since = in(now - moved_) / 1000;
      here_.busy_time = in(busy_before_ + (here_.busy > 0 ? now - busy_since_ : now - now));
      ++here_.beats;
      text = here_.text();
    }
    try {
      store_->set(key(rank_), text);
    } catch (std::exception const& error) {
      lose_store(why(error));
    }
  }
  void lose_store(std::string const& reason) {
    std::scoped_lock const lock(mutex_);
    store_is_gone_ = true;  // LibTorch prints a warning at each try
    if (verdict_.empty()) verdict_ = reason;
    found_ = Clock::now();
  }
  /// The process that serves the store ends last: the others must be able to read the verdict. Those that
  /// wait notice it soon; one that hangs, and one that was killed, do not.
  void linger() {
    if (!serves_) return;
    auto const begun = Clock::now();
    bool meets = false;
    auto until = begun + 20 * times_.beat;
    {
      std::scoped_lock const lock(mutex_);
      meets = !has_met_.load() || connects_;
      if (lingers_until_ == Clock::time_point()) lingers_until_ = until;
      until = lingers_until_;
    }
    try {
      std::vector<Place> const first = read();
      std::vector<Place> all = first;
      auto const is_awaited = [&](std::size_t rank) {
        Place const& each = all[rank];
        bool const is_here =
            each.state == State::runs || (each.state == State::joined && each.beats != 0);
        if (static_cast<int>(rank) == rank_ || each.noticed || !is_here) return false;
        auto const now = Clock::now();
        if (each.beats == first[rank].beats && now > begun + 5 * times_.beat) return false;
        bool const waits = each.waits || each.looks || (meets && each.state == State::joined);
        return now < (waits ? until : begun + 2 * times_.beat);
      };
      while (true) {
        bool any = false;
        for (std::size_t rank = 0; rank < all.size(); ++rank) any = any || is_awaited(rank);
        if (!any) return;
        std::this_thread::sleep_for(times_.beat / 5);
        all = read();
      }
    } catch (std::exception const&) {
      return;
    }
  }
  Place place_of(int rank) {
    Place place;
    // Before all have come.
    if (!has_met_.load() && !store_->check({key(rank)})) return place;
    std::optional<Place> const said = Place::parse(store_->get_to_str(key(rank)));
    if (said) return *said;
    throw ClusterError({.what = "what a rank says of itself is damaged",
                        .where = "rank " + std::to_string(rank),
                        .why = "it is not of this version of frugal",
                        .fix = "Use one version of frugal in all processes."});
  }
  std::vector<Place> read() {
    std::vector<Place> all;
    for (int rank = 0; rank < static_cast<int>(hosts_.size()); ++rank)
      all.push_back(place_of(rank));
    return all;
  }

  /// In the thread of the beats.
  void beat() {
    write();
    look();
    end_wait();
    std::string ending;
    {
      std::scoped_lock const lock(mutex_);
      bool const ends = !verdict_.empty() && ((!here_.noticed && !here_.looks) || connects_) &&
                        (here_.state == State::runs || connects_) &&
                        Clock::now() - std::max(found_, moved_) >
                            (here_.busy <= 0 ? 1 : most_busy) * times_.grace;
      if (ends) ending = verdict_;
    }
    if (ending.empty()) return;
    std::fprintf(stderr, "frugal: rank %d ends, because the run has: %s\n", rank_, ending.c_str());
    std::fflush(stderr);
    std::_Exit(1);
  }
  void end_wait() {
    std::scoped_lock const waiting(waiting_mutex_);
    if (!waiting_) return;
    bool is_over = false;
    {
      std::scoped_lock const lock(mutex_);
      is_over = !verdict_.empty();
    }
    if (!is_over) {
      auto const now = Clock::now();
      auto const passed = std::min<Clock::duration>(now - passed_, 2 * times_.beat);
      passed_ = now;
      wait_limit_->pass(std::chrono::duration_cast<std::chrono::milliseconds>(passed));
      if (!wait_limit_->wants_look() || !wait_limit_->is_over(busy_times())) return;
    }
    std::exchange(waiting_, nullptr)();
  }
  /// Whether there is a verdict in the store.
  void look() {
    {
      std::scoped_lock const lock(mutex_);
      if (store_is_gone_ || !verdict_.empty()) return;
    }
    try {
      if (!store_->check({"verdict"})) return;
      std::string const found = printable(store_->get_to_str("verdict"));
      std::scoped_lock const lock(mutex_);
      if (verdict_.empty()) verdict_ = found;
      found_ = Clock::now();
    } catch (std::exception const& error) {
      lose_store(why(error));
    }
  }

  /// The beats of a rank that has ended are the same in both.
  std::pair<std::vector<Place>, std::vector<Place>> look_twice() {
    std::pair<std::vector<Place>, std::vector<Place>> both{read(), {}};
    std::this_thread::sleep_for(times_.beat * 5 / 2);
    both.second = read();
    std::scoped_lock const lock(hosts_mutex_);
    for (std::size_t rank = 0; rank < owners_.size(); ++rank) {
      // On a busy machine a beat is late: the system knows that its process lives.
      bool const lives = owners_[rank] && owners_[rank]->life() == LockOwner::Life::alive;
      if (lives && both.first[rank].beats == both.second[rank].beats) --both.first[rank].beats;
    }
    return both;
  }

  /// The first text that any rank gives.
  std::string agree(std::string const& text) {
    return printable(store_->compareSet("verdict", std::string(), text));
  }

  /// Which ranks have failed, ended or left; empty without.
  std::string ended_of(std::vector<Place> const& before, std::vector<Place> const& now) const {
    State const own = now[static_cast<std::size_t>(rank_)].state;
    std::string ended, left;
    for (std::size_t rank = 0; rank < now.size(); ++rank) {
      Place const& place = now[rank];
      if (place.state == State::failed)
        return name(static_cast<int>(rank)) + " failed at step " + std::to_string(place.step) +
               ": " + place.what;
      if (static_cast<int>(rank) == rank_) continue;
      if (place.state == State::gone || (place.state == State::left && own == State::runs)) {
        left += (left.empty() ? "" : ", ") + name(static_cast<int>(rank));
      } else if (place.beats == before[rank].beats) {
        ended += (ended.empty() ? "" : "; ") + name(static_cast<int>(rank)) +
                 " has ended; last seen " + place.where();
      }
    }
    if (!ended.empty() || left.empty()) return ended;
    return left + " left the run before the others";
  }

  std::string judge(std::vector<Place> const& before, std::vector<Place> const& now) const {
    if (std::string ended = ended_of(before, now); !ended.empty()) return ended;
    State const own = now[static_cast<std::size_t>(rank_)].state;
    std::uint64_t most = 0;
    for (Place const& place : now) most = std::max(most, place.exchanges);
    // A rank that waits for one that hangs, alone or in a group of a few, may have made as few exchanges.
    auto const is_behind = [&](Place const& place) { return place.exchanges != most; };
    bool const any = std::ranges::any_of(now, is_behind);
    auto const works = [&](Place const& place) {
      return place.state == own && !place.waits && (!any || is_behind(place));
    };
    bool const any_works = std::ranges::any_of(now, works);
    std::string behind;
    for (std::size_t rank = 0; rank < now.size(); ++rank) {
      if (!(any_works ? works(now[rank]) : is_behind(now[rank]))) continue;
      behind += (behind.empty() ? "" : "; ") + name(static_cast<int>(rank)) + " hangs " +
                now[rank].where() + ", for " + std::to_string(now[rank].since / 1000) + " s";
    }
    if (!behind.empty()) return behind;
    return "no rank is behind: the network does not carry " + now.front().what;
  }

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  mutable std::mutex hosts_mutex_;
  std::vector<std::string> hosts_;
  std::vector<std::optional<LockOwner>> owners_{};  ///< their processes
  std::vector<Silence> silence_{};
  Clock::time_point looked_at_ = Clock::now();
  std::atomic<bool> has_met_ = true;
  bool serves_;
  WatchTimes times_;
  std::mutex write_mutex_;  ///< before the next one
  std::mutex mutex_;
  Place here_;
  Clock::time_point moved_ = Clock::now();
  Clock::time_point busy_since_{};
  Clock::duration busy_before_{};  ///< until then
  std::string verdict_;
  Clock::time_point found_{};
  Clock::time_point lingers_until_{};  ///< at most
  bool store_is_gone_ = false;
  bool connects_ = false;
  std::string broken_{};
  std::mutex waiting_mutex_;
  std::function<void()> waiting_;  ///< ends a wait of this rank that the verdict makes endless
  std::optional<WaitLimit> wait_limit_{};
  Clock::time_point passed_{};              ///< of that limit, up to here
  std::unique_ptr<PeriodicThread> thread_;  // last: it uses the members above
};

}  // namespace frugal::detail
