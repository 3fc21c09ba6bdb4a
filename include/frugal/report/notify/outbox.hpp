// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/notify/alert.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace frugal::notify {

/// Sends alerts from a thread of its own, one at a time, in their order, and tries a failed one
/// again after a growing pause. The caller waits for nothing but the end.
///
/// Errors  none: a failure is counted, and the first one is kept as a text.
class Outbox {
 public:
  /// Makes one attempt. Returns soon after a stop is requested.
  using Send = std::function<Attempt(Alert const&, std::stop_token const&)>;
  /// Waits, unless a stop comes first. A test passes its own, which does not wait.
  using Pause = std::function<void(std::chrono::milliseconds, std::stop_token const&)>;

  struct Status {
    std::uint64_t sent = 0;
    std::uint64_t failed = 0;   ///< given up after all attempts
    std::uint64_t dropped = 0;  ///< not tried: too many were waiting, or the fit ended
    std::string first_failure{};
  };

  Outbox(Send send, Delivery const& delivery, Pause pause = &Outbox::wait)
      : send_(std::move(send)),
        delivery_(delivery.bounded()),
        pause_(std::move(pause)),
        thread_(frugal::detail::signal_free_thread([this] { work(); })) {}
  Outbox(Outbox const&) = delete;
  Outbox& operator=(Outbox const&) = delete;
  /// After an exception the run does not wait for an endpoint.
  ~Outbox() { end({}); }

  FRUGAL_INLINE void post(Alert alert) {
    {
      std::scoped_lock const lock(mutex_);
      if (waiting_.size() >= delivery_.most_waiting) {
        ++status_.dropped;
        return;
      }
      waiting_.push_back(std::move(alert));
    }
    changed_.notify_all();
  }

  FRUGAL_INLINE Status status() const {
    std::scoped_lock const lock(mutex_);
    return status_;
  }

  /// Nothing more will be posted: what waits has Delivery::at_end from now on. Does not wait.
  FRUGAL_INLINE void close() {
    std::scoped_lock const lock(mutex_);
    if (std::exchange(closing_, true)) return;
    deadline_ = std::chrono::steady_clock::now() + delivery_.at_end;
    changed_.notify_all();
  }

  /// Waits for what waits, until that time is over, and ends the thread.
  FRUGAL_INLINE Status finish() {
    close();
    end(deadline_);
    return status();
  }

 private:
  FRUGAL_INLINE static void wait(std::chrono::milliseconds time, std::stop_token const& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop, time, [] { return false; });
  }

  FRUGAL_INLINE void end(std::chrono::steady_clock::time_point deadline) {
    if (!thread_.joinable()) return;
    {
      std::unique_lock lock(mutex_);
      closing_ = true;
      changed_.notify_all();
      changed_.wait_until(lock, deadline, [this] { return done_; });
    }
    stop_.request_stop();
    thread_.join();
  }

  FRUGAL_INLINE void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
      if (waiting_.empty()) break;
      if (stop_.stop_requested()) {
        status_.dropped += waiting_.size();
        break;
      }
      Alert const alert = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      Attempt const last = deliver(alert);
      lock.lock();
      if (last.result == Attempt::Result::sent) {
        ++status_.sent;
      } else {
        ++status_.failed;
        if (status_.first_failure.empty()) status_.first_failure = last.why;
      }
    }
    waiting_.clear();
    done_ = true;
    changed_.notify_all();
  }

  FRUGAL_INLINE Attempt deliver(Alert const& alert) {
    std::stop_token const stop = stop_.get_token();
    std::chrono::milliseconds pause = delivery_.first_wait;
    for (int made = 1;; ++made) {
      Attempt attempt = once(alert, stop);
      if (attempt.result != Attempt::Result::again || made >= delivery_.attempts ||
          stop.stop_requested()) {
        return attempt;
      }
      pause_(std::max(pause, std::min(attempt.wait, longest_asked)), stop);
      if (stop.stop_requested()) return attempt;
      pause = std::min(2 * pause, delivery_.longest_wait);
    }
  }

  FRUGAL_INLINE Attempt once(Alert const& alert, std::stop_token const& stop) {
    try {
      return send_(alert, stop);
    } catch (std::exception const& error) {
      return {Attempt::Result::again, error.what()};
    }
  }

  /// A server that asks for more is asked again after this: one request an hour is no burden.
  static constexpr std::chrono::milliseconds longest_asked = std::chrono::hours(1);

  Send send_;
  Delivery delivery_;
  Pause pause_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Alert> waiting_;
  Status status_;
  bool closing_ = false;
  std::chrono::steady_clock::time_point deadline_;
  bool done_ = false;
  std::stop_source stop_;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace frugal::notify
