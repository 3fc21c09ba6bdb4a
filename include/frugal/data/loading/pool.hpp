// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/data/loading/thrown_by.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace frugal::detail {

/// The item that a worker is making, for errors about a worker that hangs or has died.
struct WorkerProgress {
  using Time = std::chrono::steady_clock::time_point;
  static constexpr auto none = static_cast<std::uint64_t>(-1);

  std::atomic<std::uint64_t> at{none};
  std::atomic<bool> whole{false};  ///< at all that belongs together with `at`
  std::atomic<Time> since{};

  /// The worker has begun with something else: it does not hang.
  void begin(std::uint64_t what, bool is_whole, Time now = std::chrono::steady_clock::now());
};

/// The result of asking a pool for its next item.
template <class Made>
struct Taken {
  enum Kind { item, end, failed, died, hangs, unstarted };
  Kind kind = end;
  std::optional<Made> made{};
  std::exception_ptr failure{};             ///< failed, unstarted
  std::uint64_t at = WorkerProgress::none;  ///< died, hangs: what the worker was at
  bool whole = false;                       ///< as of WorkerProgress

  static Taken from(Kind kind, WorkerProgress const& progress) {
    return {.kind = kind, .at = progress.at, .whole = progress.whole};
  }
};

/// Threads that make items ahead of their use, and hand them out in order.
///
/// `Tasks` has
/// `std::optional<Job> deal()`  the next job, nothing at the end; one thread at a time calls it;
/// `Made make(Job&&, WorkerProgress&) const`  an item; several threads at the same time call it;
/// `void enter_thread() const`  called once in each thread. What it throws is for take(); the next
/// call starts the thread again.
///
/// A thread hangs if it has not begun with anything (WorkerProgress::begin) for the patience: an
/// item of many parts may take any time.
///
/// At most `room` items are finished or being made. Jobs are dealt in order, so the items and their
/// order do not depend on the number of threads. With 0 threads take() makes the item itself.
///
/// A thread that does not return from make() cannot be ended from outside: destroying the pool
/// leaves it behind. It owns everything that it uses (the tasks and the queue) together with the
/// pool, and frees it should it ever return.
///
/// Errors  WorkerError from seek() and take() if a thread cannot be started; the next call tries it
///         again.
template <class Tasks>
class Pool {
  using Clock = std::chrono::steady_clock;

 public:
  using Job = typename decltype(std::declval<Tasks&>().deal())::value_type;
  using Made = decltype(std::declval<Tasks const&>().make(std::declval<Job>(),
                                                          std::declval<WorkerProgress&>()));

  Pool(Tasks tasks, int threads, std::size_t room, std::chrono::duration<double> patience)
      : state_(std::make_shared<State>(std::move(tasks), room)),
        patience_(patience),
        hands_(static_cast<std::size_t>(threads)) {}
  Pool(Pool const&) = delete;
  Pool& operator=(Pool const&) = delete;
  ~Pool() { stop(); }

  /// Ends the threads, each after what it is at; nothing is taken after it. False if one hangs and
  /// was left behind. One that was waited for in vain before is not waited for again.
  bool stop() {
    std::unique_lock lock(state_->mutex);
    state_->closed = true;
    state_->work.notify_all();
    auto const left = [](auto const& hand) {
      return !hand || hand->lost || hand->dismissed || hand->gone;
    };
    wait(
        lock, [&] { return std::all_of(hands_.begin(), hands_.end(), left); },
        [&] { return first_begun([&](auto const& hand) { return !left(hand); }); });
    for (auto const& hand : hands_) dismiss(hand.get(), lock);
    return std::none_of(hands_.begin(), hands_.end(),
                        [](auto const& hand) { return hand && hand->dismissed; });
  }

  /// Throws away what was made ahead; `seek(tasks)` says where to go on. If that throws, nothing
  /// has changed. Threads that hang or have ended are replaced.
  template <class Seek>
  void seek(Seek&& seek) {
    std::vector<Slot> old(state_->slots.size());
    {
      std::unique_lock lock(state_->mutex);
      seek(state_->tasks);
      ++state_->era;
      state_->stale = state_->busy;
      state_->slots.swap(old);
      state_->dealt = state_->taken = 0;
      state_->ended = true;
    }
    old.clear();  // before anything new is made: this is memory that the bound is about
    {
      std::unique_lock const lock(state_->mutex);
      state_->ended = false;
    }
    start();
    state_->work.notify_all();
  }

  /// The next item. An end and a failure stay until the next seek; a thread that was only slow is
  /// waited for again.
  Taken<Made> take() {
    if (hands_.empty()) return make_here();
    if (!started_) start();
    std::unique_lock lock(state_->mutex);
    State& all = *state_;
    Slot& slot = all.slots[all.taken % all.slots.size()];
    auto const is_ready = [&] {
      if (all.unentered) return true;
      return all.taken < all.dealt ? slot.state != Slot::working : all.ended || all.alive == 0;
    };
    bool const ready = wait(lock, is_ready, [&] {
      if (all.taken < all.dealt) return begun(*slot.hand);
      return last_begun([](auto const& hand) { return hand->busy; });
    });
    using Kind = typename Taken<Made>::Kind;
    if (all.unentered) {
      started_ = false;
      return {.kind = Kind::unstarted, .failure = std::exchange(all.unentered, nullptr)};
    }
    if (!ready) {
      // Without a job that was dealt, all threads are at jobs of before a seek.
      bool const mine = all.taken < all.dealt;
      std::shared_ptr<WorkerThread> stuck;
      for (auto const& hand : hands_) {
        if (mine ? hand != slot.hand : !hand->busy) continue;
        hand->lost = true;
        stuck = hand;
      }
      if (!stuck) return {.kind = Kind::hangs};
      return Taken<Made>::from(Kind::hangs, stuck->progress);
    }
    if (all.taken == all.dealt) return {.kind = all.ended ? Kind::end : Kind::died};
    if (slot.state == Slot::died) return Taken<Made>::from(Kind::died, slot.hand->progress);
    if (slot.state == Slot::failed) return {.kind = Kind::failed, .failure = slot.failure};
    return hand_out(all, slot);
  }

  /// Has the threads hold still; false if they did not within the patience.
  bool pause() {
    std::unique_lock lock(state_->mutex);
    state_->paused = true;
    return wait(
        lock, [this] { return state_->busy == 0; },
        [this] { return first_begun([](auto const& hand) { return hand && hand->busy; }); });
  }
  void resume() {
    std::unique_lock const lock(state_->mutex);
    state_->paused = false;
    state_->work.notify_all();
  }

  /// What does not change while threads run: of the tasks only that may be used.
  Tasks const& tasks() const { return state_->tasks; }
  int threads() const { return static_cast<int>(hands_.size()); }

 private:
  /// A thread of the pool. Flags are under the mutex.
  struct WorkerThread {
    std::thread thread;
    WorkerProgress progress;
    std::uint64_t era = 0, ticket = 0;
    bool busy = false;
    bool lost = false;       // was waited for in vain
    bool dismissed = false;  // ends when it returns; another one has its place
    bool gone = false;       // touches nothing any more
  };

  struct Slot {
    enum State { empty, working, made_it, failed, died };
    State state = empty;
    std::optional<Made> made{};
    std::exception_ptr failure{};
    std::shared_ptr<WorkerThread> hand{};
  };

  struct State {
    State(Tasks the_tasks, std::size_t room) : tasks(std::move(the_tasks)), slots(room) {}

    bool may_deal() const {
      return !paused && !ended && dealt - taken + static_cast<std::uint64_t>(stale) < slots.size();
    }

    Tasks tasks;
    std::mutex mutex;
    std::condition_variable work;        // threads wait for jobs
    std::condition_variable changed;     // the user waits for items
    std::vector<Slot> slots;             // of ticket n: slots[n % size]
    std::uint64_t era = 0;               // counts seeks
    std::uint64_t dealt = 0, taken = 0;  // tickets of this era
    int alive = 0;
    int busy = 0;                    // threads in make()
    int stale = 0;                   // of these, with jobs of an earlier era
    std::exception_ptr unentered{};  // what enter_thread() threw
    bool ended = false, paused = false, closed = false;
  };

  /// Reports that a thread has ended, whichever way.
  class ExitGuard {
   public:
    ExitGuard(State& all, WorkerThread& hand) : all_(all), hand_(hand) {}
    ExitGuard(ExitGuard const&) = delete;
    ExitGuard& operator=(ExitGuard const&) = delete;
    ~ExitGuard() {
      std::unique_lock const lock(all_.mutex);
      if (hand_.busy) {
        hand_.busy = false;
        --all_.busy;
        if (hand_.era == all_.era) {
          all_.slots[hand_.ticket % all_.slots.size()].state = Slot::died;
        } else {
          --all_.stale;
        }
      }
      hand_.gone = true;
      if (!hand_.dismissed) --all_.alive;
      all_.work.notify_all();
      all_.changed.notify_all();
    }

   private:
    State& all_;
    WorkerThread& hand_;
  };

  /// Gives the item away, and its slot to the next job.
  static Taken<Made> hand_out(State& all, Slot& slot) {
    Taken<Made> taken{.kind = Taken<Made>::item, .made = std::move(slot.made)};
    slot = Slot{};
    ++all.taken;
    all.work.notify_one();
    return taken;
  }

  static void run(State& all, std::shared_ptr<WorkerThread> const& hand) {
    ExitGuard const departure(all, *hand);
    std::exception_ptr unentered = thrown_by([&] { all.tasks.enter_thread(); });
    std::unique_lock lock(all.mutex);
    if (unentered) {
      // Moved, so that the exception ends in the thread that reads it.
      all.unentered = std::move(unentered);
      hand->lost = true;  // start() replaces it
      return;
    }
    for (;;) {
      all.work.wait(lock, [&] { return all.closed || hand->dismissed || all.may_deal(); });
      if (all.closed || hand->dismissed) return;
      std::optional<Job> job;
      std::exception_ptr failure = thrown_by([&] { job = all.tasks.deal(); });
      if (!failure && !job) {
        all.ended = true;
        all.changed.notify_all();
        continue;
      }
      std::uint64_t const ticket = hand->ticket = all.dealt++;
      std::uint64_t const era = hand->era = all.era;
      Slot& slot = all.slots[ticket % all.slots.size()];
      if (failure) {
        slot.state = Slot::failed;
        slot.failure = std::move(failure);
        all.ended = true;
        all.changed.notify_all();
        continue;
      }
      slot.state = Slot::working;
      slot.hand = hand;
      hand->busy = true;
      ++all.busy;
      hand->progress.since.store(Clock::now(), std::memory_order_relaxed);
      lock.unlock();
      std::optional<Made> made;
      failure = thrown_by([&] { made.emplace(all.tasks.make(*std::move(job), hand->progress)); });
      lock.lock();
      if (era != all.era && !hand->dismissed) {
        // Freed before it stops counting: this is memory that the bound is about. A seek may come
        // meanwhile, and counts this thread among the stale ones.
        lock.unlock();
        made.reset();
        failure = nullptr;
        lock.lock();
      }
      if (hand->dismissed) return;  // it was counted out
      hand->busy = false;
      --all.busy;
      if (era == all.era) {
        Slot& mine = all.slots[ticket % all.slots.size()];
        mine.state = failure ? Slot::failed : Slot::made_it;
        mine.made = std::move(made);
        mine.failure = std::exchange(failure, nullptr);
        hand->lost = false;
      } else {
        --all.stale;
        all.work.notify_one();
      }
      all.changed.notify_all();
    }
  }

  /// Starts the threads that are missing: none has started, or some hang or have ended.
  void start() {
    started_ = false;
    for (auto& hand : hands_) {
      std::unique_lock lock(state_->mutex);
      if (hand && !hand->lost && !hand->gone) continue;
      dismiss(hand.get(), lock);
      hand.reset();
      auto fresh = std::make_shared<WorkerThread>();
      // Under the lock: the thread counts itself out, and must have been counted in.
      try {
        fresh->thread = signal_free_thread([state = state_, fresh] { run(*state, fresh); });
      } catch (std::system_error const& error) {
        throw WorkerError({.what = "a worker cannot be started",
                           .where = "worker " + std::to_string(&hand - hands_.data() + 1) + " of " +
                                    std::to_string(hands_.size()),
                           .why = error.what(),
                           .fix = "Set fewer workers, or raise the limits of threads and memory."});
      }
      ++state_->alive;
      hand = std::move(fresh);
    }
    started_ = true;
  }

  /// Dismisses a thread: it ends now, or when its current item is done.
  void dismiss(WorkerThread* hand, std::unique_lock<std::mutex>& lock) {
    if (hand == nullptr || !hand->thread.joinable()) return;
    if (!hand->gone) {
      hand->dismissed = true;
      --state_->alive;
      if (std::exchange(hand->busy, false)) {
        --state_->busy;
        if (hand->era != state_->era) --state_->stale;
      }
      hand->thread.detach();
      return;
    }
    lock.unlock();
    hand->thread.join();
    lock.lock();
  }

  Taken<Made> make_here() {
    using Kind = typename Taken<Made>::Kind;
    Slot& slot = state_->slots.front();
    if (!slot.failure) {
      Taken<Made> taken{.kind = Kind::end};
      slot.failure = thrown_by([&] {
        if (auto job = state_->tasks.deal()) {
          WorkerProgress progress;
          taken.made.emplace(state_->tasks.make(*std::move(job), progress));
          taken.kind = Kind::item;
        }
      });
      if (!slot.failure) return taken;
    }
    return {.kind = Kind::failed, .failure = slot.failure};
  }

  static std::optional<Clock::time_point> begun(WorkerThread const& hand) {
    return hand.progress.since.load(std::memory_order_relaxed);
  }
  /// When the first, or the last, of some threads began with what it is at; nothing without any.
  template <class Which>
  std::optional<Clock::time_point> first_begun(Which&& which) const {
    std::optional<Clock::time_point> first;
    for (auto const& hand : hands_) {
      if (which(hand) && (!first || *begun(*hand) < *first)) first = begun(*hand);
    }
    return first;
  }
  template <class Which>
  std::optional<Clock::time_point> last_begun(Which&& which) const {
    std::optional<Clock::time_point> last;
    for (auto const& hand : hands_) {
      if (which(hand) && (!last || *begun(*hand) > *last)) last = begun(*hand);
    }
    return last;
  }

  /// Waits until `done()`, as long as the patience is not over since the call and since
  /// `last_move()`. Returns whether it is done.
  template <class Done, class LastMove>
  bool wait(std::unique_lock<std::mutex>& lock, Done&& done, LastMove&& last_move) {
    Clock::time_point until = after(Clock::now());
    while (!state_->changed.wait_until(lock, until, done)) {
      auto const moved = last_move();
      if (!moved || after(*moved) <= Clock::now()) return false;
      until = after(*moved);
    }
    return true;
  }

  Clock::time_point after(Clock::time_point begin) const {
    // Patience is limited to a year, beyond which the clock would overflow.
    std::chrono::duration<double> const wait =
        std::min(patience_, std::chrono::duration<double>(std::chrono::hours(24 * 365)));
    return begin + std::chrono::duration_cast<Clock::duration>(wait);
  }

  std::shared_ptr<State> state_;
  std::chrono::duration<double> patience_;
  std::vector<std::shared_ptr<WorkerThread>> hands_;
  bool started_ = false;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/loading/pool.ipp>
#endif
