// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/command.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/base/signal_free_thread.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace frugal::notify {

/// Something that a person should learn while a run goes on.
struct Alert {
  using Value = std::variant<std::uint64_t, double, std::string>;

  std::string text;                                     ///< one sentence, for a person
  std::vector<std::pair<std::string, Value>> fields{};  ///< the same for a program

  /// One JSON object, with the sentence as "text", which chat services show.
  std::string json() const;

  /// The values as text, by name; numbers without an exponent, because shells compare them.
  std::map<std::string, std::string> words() const;
};

/// What became of one attempt to send an alert.
struct Attempt {
  enum class Result {
    sent,
    again,    ///< may succeed later: no connection, a busy server
    refused,  ///< will fail each time
  };

  Result result = Result::sent;
  std::string why{};  ///< of a failure
  /// The least time before the next attempt, if the server has asked for one.
  std::chrono::milliseconds wait{0};
};

/// How alerts are sent.
struct Delivery {
  int attempts = 5;                               ///< per alert
  std::chrono::milliseconds first_wait{500};      ///< before the second attempt; then doubled,
  std::chrono::milliseconds longest_wait{60000};  ///< up to this, or longer if the server asks
  std::size_t most_waiting = 64;                  ///< alerts beyond these are dropped
  std::chrono::milliseconds at_end{10000};        ///< for what still waits when fit ends

  /// SettingsError for numbers with which nothing would be sent. `where` names the channel.
  void require_valid(std::string const& where) const;

  /// These settings with every time limited to a year, beyond which the clock would overflow.
  Delivery bounded() const;
};

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

namespace frugal {

/// An option of Budget and BurnRate: runs a program for each alert, without a shell. {text} and the
/// alert's other fields in braces are replaced in its arguments.
struct NotifyCommand {
  Command words{};                    ///< {"notify-send", "{text}"}
  std::chrono::seconds patience{30};  ///< then it is killed
  /// A program is not run again, and has its patience at the end of a fit.
  notify::Delivery delivery{
      .attempts = 1, .first_wait{}, .at_end = std::chrono::milliseconds(30000)};

  /// SettingsError for settings with which no program could be run.
  void require_valid(std::string const& owner) const;

  std::string name() const { return "the command " + words.front(); }

  class Sender;
};

class NotifyCommand::Sender {
 public:
  explicit Sender(NotifyCommand settings) : settings_(std::move(settings)) {}

  notify::Attempt operator()(notify::Alert const& alert, std::stop_token const& stop) const {
    std::string why = detail::failure_of(detail::filled(settings_.words, alert.words()),
                                         {.patience = settings_.patience, .stop = stop});
    if (why.empty()) return {};
    if (stop.stop_requested()) {
      return {notify::Attempt::Result::refused, "the fit ended before the program did"};
    }
    return {notify::Attempt::Result::again, std::move(why)};
  }

 private:
  NotifyCommand settings_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/notify/alert.ipp>
#endif
