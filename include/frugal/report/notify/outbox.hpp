// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/report/notify/alert.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
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

  void post(Alert alert);

  Status status() const;

  /// Nothing more will be posted: what waits has Delivery::at_end from now on. Does not wait.
  void close();

  /// Waits for what waits, until that time is over, and ends the thread.
  Status finish();

 private:
  static void wait(std::chrono::milliseconds time, std::stop_token const& stop);

  void end(std::chrono::steady_clock::time_point deadline);

  void work();

  Attempt deliver(Alert const& alert);

  Attempt once(Alert const& alert, std::stop_token const& stop);

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

#ifndef FRUGAL_COMPILED
#include <frugal/report/notify/outbox.ipp>
#endif
