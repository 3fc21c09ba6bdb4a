// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/spot/clouds.hpp>
#include <frugal/policy/spot/metadata_client.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

// Needs libcurl: FRUGAL_NOTICES=ON, and the target frugal::notices.
namespace frugal {

/// How often a service is polled.
struct NoticePolling {
  /// From the end of one poll to the next; by default the cloud's own recommendation.
  std::optional<std::chrono::milliseconds> interval = {};
  /// The pause doubles with every consecutive failure, up to this value if the service has answered
  /// before: a notice may leave no more than half a minute.
  std::chrono::milliseconds longest_pause{10000};
  /// The limit if the service has never answered: the machine is probably not in that cloud.
  std::chrono::milliseconds rare_pause{60000};
  int warn_after = 3;  ///< consecutive failures before the single warning
  /// Called at most once, with a sentence, in the side thread; exceptions are dropped.
  std::function<void(std::string const&)> warn = {};
};

/// Statistics of the polling so far.
struct NoticeStatus {
  std::uint64_t polls = 0;            ///< completed, failed ones included
  std::uint64_t failures = 0;         ///< polls that failed
  std::uint64_t failures_in_row = 0;  ///< consecutive failures since the last answer
  bool answered = false;              ///< whether there was at least one sensible answer
  std::string last_error = {};        ///< text of the last failure, kept after later answers
  std::string warning = {};           ///< the single warning, if given
};

namespace detail {

/// The pause from the end of a poll to the next one. `interval` must be set.
inline std::chrono::milliseconds pause_after(NoticePolling const& polling,
                                             NoticeStatus const& status) {
  std::chrono::milliseconds pause = *polling.interval;
  std::chrono::milliseconds const most =
      std::max(pause, status.answered ? polling.longest_pause : polling.rare_pause);
  for (std::uint64_t i = 0; i < status.failures_in_row && pause < most; ++i) pause *= 2;
  return std::min(pause, most);
}

}  // namespace detail

/// Polls a cloud's metadata service in a side thread, and keeps the newest notice.
///
/// Training checks `pending()`, one atomic load per step. No call of this class waits for the
/// network, except acknowledge(), up to its timeout. The thread takes no signals, so that handlers
/// run where they did before. Failures of the thread are counted in `status()`, not thrown. A
/// preempt notice is final: polling ends with it. The destructor cancels a pending request.
///
/// Errors  SettingsError for pauses outside 1 ms to a day, and for invalid settings of the
///         provider; MetadataError if libcurl is unusable; std::system_error if no thread can be
///         started. All from the constructor.
template <NoticeProvider Provider>
class NoticePoller {
 public:
  using Milliseconds = std::chrono::milliseconds;

  explicit NoticePoller(Provider const& provider = {}, NoticePolling polling = {})
      : polling_(checked(std::move(polling))),
        client_(stop_.get_token()),
        session_(provider, client_),
        thread_(detail::signal_free_thread([this] { run(); })) {}

  NoticePoller(NoticePoller const&) = delete;
  NoticePoller& operator=(NoticePoller const&) = delete;

  ~NoticePoller() {
    stop_.request_stop();
    thread_.join();
  }

  /// Whether the machine will be preempted. Once true, it stays true.
  bool pending() const noexcept { return news_.load(std::memory_order_acquire) == preempted; }

  /// Whether there is a notice of any kind, including a hint.
  bool advised() const noexcept { return news_.load(std::memory_order_acquire) != nothing; }

  /// The newest notice; a hint never replaces a preempt notice.
  std::optional<Notice> seen() const {
    std::lock_guard const lock(mutex_);
    return newest_;
  }

  NoticeStatus status() const {
    std::lock_guard const lock(mutex_);
    return status_;
  }

  /// Waits for a preempt notice, at most this long (a day); returns `pending()`.
  bool wait(Milliseconds patience) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::min(patience, day), [this] { return pending(); });
  }

  /// Tells the cloud that it may preempt the machine now. Call it after the save, if at all. Waits
  /// at most `patience` for the response. False if there is no preempt notice, if the provider does
  /// not support it or is not set to (Azure::acknowledge), or if it failed.
  bool acknowledge(Milliseconds patience = Milliseconds(2000)) {
    if constexpr (can_acknowledge) {
      std::unique_lock lock(mutex_);
      if (!pending()) return false;
      if (acknowledgement_ == Acknowledgement::none) {
        acknowledgement_ = Acknowledgement::asked;
        changed_.notify_all();
      }
      changed_.wait_for(lock, std::min(patience, day),
                        [this] { return acknowledgement_ != Acknowledgement::asked; });
      return acknowledgement_ == Acknowledgement::accepted;
    } else {
      return false;
    }
  }

 private:
  static constexpr Milliseconds day = std::chrono::hours(24);

  enum : int { nothing, hinted, preempted };
  enum class Acknowledgement { none, asked, accepted, failed };

  static constexpr bool can_acknowledge = requires(typename Provider::Session& session) {
    { session.acknowledge() } -> std::same_as<bool>;
  };

  static NoticePolling checked(NoticePolling polling) {
    if (!polling.interval) polling.interval = Provider::interval;
    auto const sound = [](Milliseconds pause) { return pause > Milliseconds(0) && pause <= day; };
    if (!sound(*polling.interval) || !sound(polling.longest_pause) || !sound(polling.rare_pause) ||
        polling.warn_after < 1) {
      throw SettingsError({.what = "the settings of NoticePolling are out of range",
                           .where = std::string(Provider::name),
                           .why = "a pause is not between 1 ms and a day, or warn_after below 1",
                           .fix = "Use the defaults of NoticePolling."});
    }
    return polling;
  }

  void run() noexcept {
    std::stop_token const stop = stop_.get_token();
    while (!stop.stop_requested() && !pending()) {
      try {
        poll();
      } catch (...) {  // no memory for a text: the next poll finds the same
      }
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, detail::pause_after(polling_, status_),
                        [this] { return pending(); });
    }
    if constexpr (can_acknowledge) {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop,
                         [this] { return acknowledgement_ == Acknowledgement::asked; })) {
        return;
      }
      lock.unlock();
      bool accepted = false;
      try {
        accepted = attempt([this] { return session_.acknowledge(); });
      } catch (...) {
      }
      lock.lock();
      acknowledgement_ = accepted ? Acknowledgement::accepted : Acknowledgement::failed;
      changed_.notify_all();
    }
  }

  void poll() {
    std::optional<Notice> found;
    bool const answered = attempt([&] {
      found = session_.poll();
      return true;
    });
    std::string warning;
    {
      std::lock_guard const lock(mutex_);
      ++status_.polls;
      if (answered) {
        status_.answered = true;
        status_.failures_in_row = 0;
      } else {
        ++status_.failures;
        ++status_.failures_in_row;
        warning = due_warning();
      }
      if (found) publish(std::move(*found));
    }
    if (!warning.empty() && polling_.warn) {
      try {
        polling_.warn(warning);
      } catch (...) {  // a failing log is no reason to stop polling
      }
    }
  }

  /// Runs work that may throw, and keeps the error's text.
  template <class Work>
  bool attempt(Work work) {
    std::string text = "a value that is not a std::exception was thrown";
    try {
      return work();
    } catch (std::exception const& error) {
      text = error.what();
    } catch (...) {
    }
    if (stop_.stop_requested()) return false;  // cancelled on purpose
    std::lock_guard const lock(mutex_);
    status_.last_error = std::move(text);
    return false;
  }

  void publish(Notice found) {
    int const kind = found.kind == Notice::Kind::preempt ? preempted : hinted;
    newest_ = std::move(found);
    news_.store(kind, std::memory_order_release);
    changed_.notify_all();
  }

  std::string due_warning() {
    if (!status_.warning.empty() ||
        status_.failures_in_row < static_cast<std::uint64_t>(polling_.warn_after)) {
      return {};
    }
    status_.warning = "frugal: no notices from " + std::string(Provider::name) + " since " +
                      std::to_string(status_.failures_in_row) + " polls" +
                      (status_.answered ? "" : "; this machine is probably not in that cloud") +
                      ". The last error was: " + status_.last_error;
    return status_.warning;
  }

  NoticePolling const polling_;
  std::stop_source stop_;
  std::atomic<int> news_{nothing};
  mutable std::mutex mutex_;  // guards the members up to the blank line
  mutable std::condition_variable_any changed_;
  std::optional<Notice> newest_;
  NoticeStatus status_;
  Acknowledgement acknowledgement_ = Acknowledgement::none;

  MetadataClient client_;  // these two belong to the thread
  typename Provider::Session session_;
  std::thread thread_;
};

/// An option of Spot: learns of a preemption from the cloud itself, for machines that get no
/// signal. `Spot<SigtermSave, Grace<120>, Notices<Aws>>`; also Gcp and Azure.
///
/// A side thread polls the metadata service; a step checks a flag. On failures training continues:
/// see NoticePoller.
template <class Provider>
struct Notices {
  Provider provider{};
  NoticePolling polling{};

  class Watch {
   public:
    explicit Watch(Notices const& settings) : poller_(settings.provider, settings.polling) {}

    bool pending() const { return poller_.pending(); }
    /// The notice's source and text.
    std::string text() const {
      auto const notice = poller_.seen();
      return notice ? notice->source + ": " + notice->text : std::string();
    }
    /// Why notices may be missed: the cloud does not answer. Empty if it does.
    std::string warning() const { return poller_.status().warning; }
    /// Called once the run is saved: tells the cloud that it may preempt now, if it supports that
    /// (Azure, if enabled).
    void saved() { poller_.acknowledge(); }

   private:
    NoticePoller<Provider> poller_;
  };
};

}  // namespace frugal
