// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/cluster/communicator/rendezvous.hpp>

namespace frugal::detail {

/// Where a rank is, as it tells the others at each beat (RankWatch).
struct RankPlace {
  enum class State { joined, runs, left, failed, gone };

  std::uint64_t beats = 0;
  State state = State::joined;  ///< no run has begun
  bool looks = false;           ///< for a verdict, after an exchange has failed
  bool noticed = false;         ///< that the run is over: it has the verdict
  std::uint64_t step = 0;
  std::uint64_t exchanges = 0;  ///< begun
  bool waits = false;           ///< in the last one of them
  std::uint64_t since = 0;      ///< milliseconds in which it has neither begun nor left one
  int busy = 0;                 ///< with how many checkpoints
  std::uint64_t busy_time = 0;  ///< microseconds so far
  std::string what{};           ///< the last exchange, or the error

  /// "at step 7 in the sum of gradients".
  std::string where() const {
    return "at step " + std::to_string(step) + (waits ? " in " : " after ") +
           (what.empty() ? "its start" : what);
  }

  std::string text() const;
  /// Null if it is not of this form.
  static std::optional<RankPlace> parse(std::string const& said);
};

/// What a rank says of its work on checkpoints.
struct BusyTime {
  std::uint64_t total = 0;  ///< microseconds of it so far
  bool now = false;
};

/// The limit of a wait for other ranks. It runs while no rank is busy, and begins again when one was:
/// what a rank does between two looks is in its total. The total of a rank that has ended stands still.
///
/// The rank that waits counts, too: another one may wait for what a thread of this one writes.
class WaitLimit {
 public:
  using Time = std::chrono::milliseconds;

  /// `beat`: after this time a rank says again how long it has been busy.
  WaitLimit(Time limit, Time beat)
      : limit_(limit),
        pause_(std::clamp<Time>(limit / 8, Time(1), std::chrono::seconds(5))),
        late_(5 * beat) {}

  /// So much time has passed, in which this process was not stopped.
  void pass(Time time) {
    waited_ += time;
    unseen_ += time;
  }
  bool wants_look() const { return unseen_ >= pause_; }
  /// After a look at all ranks: whether the wait has to end. Empty: they could not be seen.
  bool is_over(std::vector<BusyTime> const& now);

 private:
  Time limit_, pause_, late_;
  Time waited_{0};  ///< since a rank was busy
  Time unseen_{0};  ///< since the last look
  std::vector<BusyTime> before_{};
};

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
            bool serves = false, WatchTimes const& times = {});
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
  std::vector<BusyTime> busy_times();
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
  enum class Connections { rest, open, close };
  /// Connections are being made or closed. Gloo hangs there for minutes when another rank has ended, or its machine
  /// has vanished: then this process ends, too.
  void connects(Connections now) {
    change([&] { connections_ = now; });
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
  void fail(std::string const& text) noexcept;

  /// The verdict of the first rank that has found one; empty without. Quick.
  std::string verdict();
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
  std::string look_for_ended();
  /// In such a thread, after an exchange has failed here: a verdict if a rank has ended or failed, and
  /// otherwise nothing. Takes two and a half beats.
  std::string find_ended();
  /// In such a thread: gives all the verdict that this rank ends because of an error of the store's.
  std::string ends_by(std::exception const& error);
  /// In such a thread: gives all the verdict that a rank has not done `what` for so long.
  std::string accuse(int rank, std::string const& what);
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
  std::string find();

  /// Of what a look at the store has thrown.
  static std::string why(std::exception const& error);

 private:
  std::shared_ptr<void> busier(int by);

  using Clock = std::chrono::steady_clock;
  static constexpr std::string_view no_store =
      "the store does not answer: the process that serves it has ended (rank 0, or the launcher)";
  static constexpr int most_busy = 30;  ///< times the grace of one that is not
  using Place = RankPlace;
  using State = RankPlace::State;
  std::vector<bool> ended_in(std::vector<Place> const& now);
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
  void write();
  void lose_store(std::string const& reason) {
    std::scoped_lock const lock(mutex_);
    store_is_gone_ = true;  // LibTorch prints a warning at each try
    if (verdict_.empty()) verdict_ = reason;
    found_ = Clock::now();
  }
  /// The process that serves the store ends last: the others must be able to read the verdict. Those that
  /// wait notice it soon; one that hangs, and one that was killed, do not.
  void linger();
  Place place_of(int rank);
  std::vector<Place> read() {
    std::vector<Place> all;
    for (int rank = 0; rank < static_cast<int>(hosts_.size()); ++rank)
      all.push_back(place_of(rank));
    return all;
  }

  /// In the thread of the beats.
  void beat();
  void look_while_opening();
  void end_wait();
  /// Whether there is a verdict in the store.
  void look();

  /// The beats of a rank that has ended are the same in both.
  std::pair<std::vector<Place>, std::vector<Place>> look_twice();

  /// The first text that any rank gives.
  std::string agree(std::string const& text) {
    return printable(store_->compareSet("verdict", std::string(), text));
  }

  /// Which ranks have failed, ended or left; empty without.
  std::string ended_of(std::vector<Place> const& before, std::vector<Place> const& now) const;
  std::string judge(std::vector<Place> const& before, std::vector<Place> const& now) const;

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
  Connections connections_ = Connections::rest;
  std::string broken_{};
  std::mutex waiting_mutex_;
  std::function<void()> waiting_;  ///< ends a wait of this rank that the verdict makes endless
  std::optional<WaitLimit> wait_limit_{};
  Clock::time_point passed_{};              ///< of that limit, up to here
  std::unique_ptr<PeriodicThread> thread_;  // last: it uses the members above
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/communicator/rank_watch.ipp>
#endif
