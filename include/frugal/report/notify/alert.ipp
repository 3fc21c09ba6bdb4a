// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/notify/alert.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <exception>

namespace frugal::notify {

FRUGAL_INLINE std::string Alert::json() const {
  detail::JsonWriter object;
  object.object().add("text", text);
  for (auto const& [name, value] : fields) object.add(name, value);
  return object.str();
}

FRUGAL_INLINE std::map<std::string, std::string> Alert::words() const {
  std::map<std::string, std::string> all{{"text", text}};
  for (auto const& [name, value] : fields) {
    all[name] = std::visit(
        [](auto const& each) {
          if constexpr (std::is_same_v<std::decay_t<decltype(each)>, std::string>) {
            return each;
          } else if constexpr (std::is_same_v<std::decay_t<decltype(each)>, double>) {
            return frugal::detail::fixed_short(each, 6);
          } else {
            return std::to_string(each);
          }
        },
        value);
  }
  return all;
}

FRUGAL_INLINE void Delivery::require_valid(std::string const& where) const {
  auto const refuse = [&](char const* name, auto value, char const* least) {
    throw SettingsError({.what = std::string(name) + " is " + std::to_string(value),
                         .where = where + ".delivery." + name,
                         .why = "no alert could be sent with it",
                         .fix = std::string("Give ") + least + " or more."});
  };
  if (attempts < 1) refuse("attempts", attempts, "1");
  if (most_waiting < 1) refuse("most_waiting", most_waiting, "1");
  if (first_wait.count() < 0) refuse("first_wait", first_wait.count(), "0 ms");
  if (longest_wait.count() < 0) refuse("longest_wait", longest_wait.count(), "0 ms");
  if (at_end.count() < 0) refuse("at_end", at_end.count(), "0 ms");
}

FRUGAL_INLINE Delivery Delivery::bounded() const {
  constexpr std::chrono::milliseconds most = std::chrono::hours(24 * 365);
  Delivery out = *this;
  for (auto* each : {&out.first_wait, &out.longest_wait, &out.at_end}) {
    *each = std::min(*each, most);
  }
  return out;
}

FRUGAL_INLINE void Outbox::post(Alert alert) {
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

FRUGAL_INLINE Outbox::Status Outbox::status() const {
  std::scoped_lock const lock(mutex_);
  return status_;
}

FRUGAL_INLINE void Outbox::close() {
  std::scoped_lock const lock(mutex_);
  if (std::exchange(closing_, true)) return;
  deadline_ = std::chrono::steady_clock::now() + delivery_.at_end;
  changed_.notify_all();
}

FRUGAL_INLINE Outbox::Status Outbox::finish() {
  close();
  end(deadline_);
  return status();
}

FRUGAL_INLINE void Outbox::wait(std::chrono::milliseconds time, std::stop_token const& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_for(lock, stop, time, [] { return false; });
}

FRUGAL_INLINE void Outbox::end(std::chrono::steady_clock::time_point deadline) {
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

FRUGAL_INLINE void Outbox::work() {
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

FRUGAL_INLINE Attempt Outbox::deliver(Alert const& alert) {
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

FRUGAL_INLINE Attempt Outbox::once(Alert const& alert, std::stop_token const& stop) {
  try {
    return send_(alert, stop);
  } catch (std::exception const& error) {
    return {Attempt::Result::again, error.what()};
  }
}

}  // namespace frugal::notify

namespace frugal {

FRUGAL_INLINE void NotifyCommand::require_valid(std::string const& owner) const {
  if (words.empty() || words[0].empty()) {
    throw SettingsError({.what = "there is no program to run",
                         .where = owner + "::command.words",
                         .why = "it is empty",
                         .fix = R"(Set it, as in {"notify-send", "{text}"}.)"});
  }
  if (patience <= std::chrono::seconds(0)) {
    throw SettingsError({.what = "the program has " + std::to_string(patience.count()) + " s",
                         .where = owner + "::command.patience",
                         .why = "it would be killed before it begins",
                         .fix = "Give more than 0 s; 30 s is the default."});
  }
  delivery.require_valid(owner + "::command");
}

}  // namespace frugal
