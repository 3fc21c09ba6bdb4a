// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/data/loading/thrown_by.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <locale>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <typeinfo>
#include <utility>

#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

namespace frugal {

/// How far a background worker runs ahead, and how long it is waited for.
struct PrefetchOptions {
  std::size_t depth = 4;  ///< finished batches that wait at most, at least 1
  std::chrono::duration<double> patience = std::chrono::seconds(60);  ///< for one batch
  int threads = 1;  ///< cores that one operator of the worker may use; 0: LibTorch's own setting
};

namespace detail {

/// A bounded queue from one producer to one consumer that carries items, then how it ended.
/// Both sides hold it by shared pointer: whoever leaves last frees it.
template <class T>
class Channel {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  explicit Channel(std::size_t depth) : depth_(depth) {}

  /// Producer: waits for room, and while it is paused. False once the consumer has closed.
  bool push(T item) {
    std::unique_lock lock(mutex_);
    busy_ = false;
    if (paused_) changed_.notify_all();
    changed_.wait(lock, [&] { return closed_ || items_.size() < depth_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    changed_.notify_all();
    changed_.wait(lock, [&] { return closed_ || !paused_; });
    busy_ = true;
    return !closed_;
  }

  /// Producer: ends the stream. `failure` is null if the items ended in order.
  void finish(std::exception_ptr failure) {
    std::lock_guard const lock(mutex_);
    failure_ = std::move(failure);
    finished_ = true;
    busy_ = false;
    changed_.notify_all();
  }

  enum class Taken { item, end, failure, nothing };

  /// Consumer: the oldest item; how it ended only after the last item; nothing at the deadline.
  Taken take(std::optional<T>& item, Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, deadline, [&] { return finished_ || !items_.empty(); })) {
      return Taken::nothing;
    }
    if (!items_.empty()) {
      item.emplace(std::move(items_.front()));
      items_.pop_front();
      changed_.notify_all();
      return Taken::item;
    }
    return failure_ ? Taken::failure : Taken::end;
  }

  /// Consumer: the producer holds still after the item that it is at. Whether it did so before
  /// the deadline.
  bool pause(Deadline deadline) {
    std::unique_lock lock(mutex_);
    paused_ = true;
    return changed_.wait_until(lock, deadline, [&] { return !busy_; });
  }
  void resume() {
    std::lock_guard const lock(mutex_);
    paused_ = false;
    changed_.notify_all();
  }

  std::exception_ptr failure() const {
    std::lock_guard const lock(mutex_);
    return failure_;
  }

  /// Consumer: closes the stream. Returns whether the producer ended before the deadline.
  bool close(Deadline deadline) {
    std::unique_lock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
    return changed_.wait_until(lock, deadline, [&] { return finished_; });
  }

 private:
  std::size_t const depth_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  std::exception_ptr failure_;
  bool finished_ = false;
  bool closed_ = false;
  bool paused_ = false;
  bool busy_ = true;  // the producer is at an item, and not waiting here
};

/// The type of the exception that is being handled, for those that are no std::exception.
FRUGAL_INLINE std::string current_exception_name() {
#if __has_include(<cxxabi.h>)
  if (std::type_info const* type = abi::__cxa_current_exception_type()) {
    int status = 0;
    std::unique_ptr<char, decltype(&std::free)> const name(
        abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), &std::free);
    return name ? name.get() : type->name();
  }
#endif
  return "unknown type";
}

}  // namespace detail

/// Runs `produce` in a thread of its own, a bounded number of items ahead of `next()`.
///
/// A produce that throws ends in a WorkerError from `next()`, at exactly the item that it was
/// asked for: what came before is given first. So does one that ends its thread. A produce that
/// does not return ends in a WorkerError once `patience` is over; the thread cannot be ended from
/// outside, so destroying the Worker then leaves it behind. It owns everything it touches
/// (`produce` and the queue) and frees it should it ever return.
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
        channel_(std::make_shared<detail::Channel<T>>(settings.depth)),
        thread_(started(
            [channel = channel_, work = std::move(produce)]() mutable { run(work, *channel); })) {}

  Worker(Worker const&) = delete;
  Worker& operator=(Worker const&) = delete;
  ~Worker() { stop(); }

  /// The next item, or nothing when `produce` has ended. May be called again after an error: a
  /// failure stays, a worker that was only slow is waited for once more.
  std::optional<T> next() {
    using Taken = typename detail::Channel<T>::Taken;
    std::optional<T> item;
    switch (channel_->take(item, deadline())) {
      case Taken::item:
        ++given_;
        hangs_ = false;
        break;
      case Taken::end:
        break;
      case Taken::failure:
        rethrow(channel_->failure());
      case Taken::nothing:
        hangs_ = true;
        throw WorkerError(
            {.what = "the background worker hangs",
             .where = where(),
             .why = "no batch came for " + seconds() + " s",
             .fix = "Find what the source waits for, or raise PrefetchOptions::patience."});
    }
    return item;
  }

  /// Has the thread hold still between two items; false when it did not within `patience`.
  bool pause() { return channel_->pause(deadline()); }
  void resume() { channel_->resume(); }

  /// Ends the thread; false when it hangs and had to be left behind. A worker that hung before
  /// is not waited for a second time.
  bool stop() {
    if (!thread_.joinable()) return !left_behind_;
    auto const now = std::chrono::steady_clock::now();
    if (channel_->close(hangs_ ? now : deadline())) {
      thread_.join();
      return true;
    }
    thread_.detach();
    left_behind_ = true;
    return false;
  }

 private:
  /// Has the last word for a thread that ends within `produce`.
  class Ending {
   public:
    explicit Ending(detail::Channel<T>& channel) : channel_(channel) {}
    Ending(Ending const&) = delete;
    Ending& operator=(Ending const&) = delete;
    ~Ending() {
      if (ended_) return;
      channel_.finish(std::make_exception_ptr(
          std::runtime_error("its thread was ended from within, as pthread_exit does")));
    }
    void with(std::exception_ptr failure) {
      ended_ = true;
      channel_.finish(std::move(failure));
    }

   private:
    detail::Channel<T>& channel_;
    bool ended_ = false;
  };

  template <class Work>
  static std::thread started(Work work) {
    try {
      return detail::signal_free_thread(std::move(work));
    } catch (std::system_error const& error) {
      throw WorkerError({.what = "the background worker cannot be started",
                         .where = "",
                         .why = error.what(),
                         .fix = "Raise the limits of threads and memory."});
    }
  }

  template <class Produce>
  static void run(Produce& produce, detail::Channel<T>& channel) {
    Ending ending(channel);
    // Handed over outside the handler, which holds the exception too: from here on it belongs
    // to the other thread alone.
    ending.with(detail::thrown_by([&] {
      while (std::optional<T> item = produce()) {
        if (!channel.push(std::move(*item))) break;
      }
    }));
  }

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

  std::chrono::steady_clock::time_point deadline() const {
    // A year is for ever; more would overflow the clock.
    std::chrono::duration<double> const wait = std::min(patience_, year);
    return std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(wait);
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

  static constexpr std::chrono::duration<double> year = std::chrono::hours(24 * 365);

  std::chrono::duration<double> patience_;
  std::string where_;
  ErrorFormatter words_;
  std::uint64_t given_ = 0;
  bool hangs_ = false;
  bool left_behind_ = false;
  std::shared_ptr<detail::Channel<T>> channel_;
  std::thread thread_;
};

}  // namespace frugal
