// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/loading/pool.hpp>
#include <frugal/data/loading/thrown_by.hpp>
#include <frugal/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <locale>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace frugal {

/// How far a background worker runs ahead, and how long it is waited for.
struct PrefetchOptions {
  std::size_t depth = 4;  ///< finished batches that wait at most, at least 1
  std::chrono::duration<double> patience = std::chrono::seconds(60);  ///< for one batch
  int threads = 1;  ///< cores that one operator of the worker may use; 0: LibTorch's own setting
};

namespace detail {

/// Items of one producer, for a pool of one thread: that thread deals and makes, so `ended` needs no
/// lock.
template <class T>
class ProducedInOrder {
 public:
  struct Job {};

  template <class Produce>
  explicit ProducedInOrder(Produce produce)
      : state_(std::make_shared<State>(
            [work = std::make_shared<Produce>(std::move(produce))] { return (*work)(); })) {}

  /// Nothing after the end, and after a failure: a producer that threw is not called again.
  std::optional<Job> deal() {
    return std::exchange(state_->ended, true) ? std::nullopt : std::optional(Job{});
  }
  std::optional<T> make(Job const&, WorkerProgress&) const {
    std::optional<T> item = state_->produce();
    state_->ended = !item;
    return item;
  }
  void enter_thread() const {}

 private:
  struct State {
    explicit State(std::function<std::optional<T>()> work) : produce(std::move(work)) {}
    std::function<std::optional<T>()> produce;
    bool ended = false;
  };
  std::shared_ptr<State> state_;
};

}  // namespace detail

/// Runs `produce` in a thread of its own, a bounded number of items ahead of `next()`: a Pool of one
/// thread.
///
/// A produce that throws ends in a WorkerError from `next()`, at exactly the item that it was
/// asked for: what came before is given first. So does one that ends its thread. A produce that
/// does not return ends in a WorkerError once `patience` is over; the thread cannot be ended from
/// outside, so destroying the Worker then leaves it behind. It owns everything it touches, and frees
/// it should it ever return.
///
/// Errors  SettingsError for a depth of 0 or a patience that is not positive; WorkerError if the
///         thread cannot be started; WorkerError with what `produce` threw nested inside it
///         (std::rethrow_if_nested).
template <class T>
class Worker {
 public:
  /// What an exception of `produce` says, for a WorkerError.
  using ErrorFormatter = std::string (*)(std::exception const&);

  /// `produce()` gives a std::optional<T>, nothing at the end. `place` says in errors where the
  /// items begin. Signals go to the program's own threads.
  template <class Produce>
  Worker(
      Produce produce, PrefetchOptions const& settings, std::string where,
      ErrorFormatter words = [](std::exception const& error) { return std::string(error.what()); })
      : patience_(checked(settings)),
        where_(std::move(where)),
        words_(words),
        pool_(detail::ProducedInOrder<T>(std::move(produce)), 1, settings.depth + 1, patience_) {
    try {
      pool_.seek([](auto const&) {});  // begins
    } catch (WorkerError const& error) {
      throw WorkerError({.what = "the background worker cannot be started",
                         .where = "",
                         .why = error.fault().why,
                         .fix = "Raise the limits of threads and memory."});
    }
  }

  /// The next item, or nothing when `produce` has ended. May be called again after an error: a
  /// failure stays, a worker that was only slow is waited for once more.
  std::optional<T> next() {
    auto taken = pool_.take();
    switch (taken.kind) {
      case Taken::item:
        ++given_;
        return *std::move(taken.made);
      case Taken::end:
        break;
      case Taken::died:
        rethrow(std::make_exception_ptr(
            std::runtime_error("its thread was ended from within, as pthread_exit does")));
      case Taken::failed:
      case Taken::unstarted:
        rethrow(taken.failure);
      case Taken::hangs:
        throw WorkerError(
            {.what = "the background worker hangs",
             .where = where(),
             .why = "no batch came for " + seconds() + " s",
             .fix = "Find what the source waits for, or raise PrefetchOptions::patience."});
    }
    return std::nullopt;
  }

  /// Has the thread hold still between two items; false when it did not within `patience`.
  bool pause() { return pool_.pause(); }
  void resume() { pool_.resume(); }

  /// Ends the thread; false when it hangs and had to be left behind. A worker that hung before
  /// is not waited for a second time.
  bool stop() { return pool_.stop(); }

 private:
  using Taken = detail::Taken<std::optional<T>>;

  [[noreturn]] void rethrow(std::exception_ptr const& failure) const {
    try {
      std::rethrow_exception(failure);
    } catch (std::exception const& error) {
      std::throw_with_nested(fault(words_(error)));
    } catch (...) {
      std::throw_with_nested(fault("it threw a value of type " + detail::current_exception_name()));
    }
  }

  WorkerError fault(std::string const& why) const {
    return WorkerError({.what = "the background worker failed",
                        .where = where(),
                        .why = std::move(why),
                        .fix = "Run the source without Prefetch to see it fail in place."});
  }

  std::string where() const { return "batch " + std::to_string(given_) + " after " + where_; }

  std::string seconds() const {
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text << patience_.count();
    return text.str();
  }

  static std::chrono::duration<double> checked(PrefetchOptions const& settings) {
    if (settings.depth == 0 || !(settings.patience.count() > 0)) {
      throw SettingsError({.what = "prefetching with depth " + std::to_string(settings.depth) +
                                   " and patience " + std::to_string(settings.patience.count()) +
                                   " s",
                           .where = "",
                           .why = "",
                           .fix = "Give a depth of at least 1 and a patience above 0."});
    }
    return settings.patience;
  }

  std::chrono::duration<double> patience_;
  std::string where_;
  ErrorFormatter words_;
  std::uint64_t given_ = 0;
  detail::Pool<detail::ProducedInOrder<T>> pool_;
};

}  // namespace frugal
