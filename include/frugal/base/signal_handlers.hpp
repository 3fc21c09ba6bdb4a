// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <array>
#include <cstddef>
#include <mutex>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// Signal handlers of the process, shared by all users, because a process has only one handler per
/// signal. The first user installs the handlers, the last one restores the former ones. Users join
/// and leave in the program's own threads, never in a handler.
class SignalHandlers {
 public:
  using Handler = void (*)(int);

  /// Calls `take(*this)` for the first user; it calls the two functions below.
  template <class Take>
  void join(Take&& take) {
    std::scoped_lock const lock(mutex_);
    if (users_++ == 0) take(*this);
  }

  /// Handles the signal, whatever the program did with it.
  FRUGAL_INLINE void take(int signal, Handler handler) {
    struct sigaction action{};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    // Interrupted reads and writes continue: other code need not know of the signal.
    action.sa_flags = SA_RESTART;
    Taken taken{.signal = signal, .by = handler};
    if (::sigaction(signal, &action, &taken.former) != 0) return;
    taken_.at(count_++) = taken;
  }
  /// Handles the signal only if the program neither handles nor ignores it.
  FRUGAL_INLINE void take_if_default(int signal, Handler handler) {
    struct sigaction now{};
    if (::sigaction(signal, nullptr, &now) == 0 && is(now, SIG_DFL)) take(signal, handler);
  }

  /// Restores the former handlers; `stand_in` replaces the default action. A handler that the
  /// program has installed meanwhile stays.
  FRUGAL_INLINE void release(Handler stand_in = SIG_DFL) {
    std::scoped_lock const lock(mutex_);
    if (--users_ != 0) return;
    for (std::size_t i = 0; i < count_; ++i) {
      struct sigaction& former = taken_[i].former;
      if (is(former, SIG_DFL) || is(former, stand_in_)) former.sa_handler = stand_in;
    }
    stand_in_ = stand_in;
    restore();
  }
  /// Restores the former handlers, and the stand-in of an earlier user among them.
  FRUGAL_INLINE void put_back() {
    std::scoped_lock const lock(mutex_);
    if (--users_ == 0) restore();
  }

 private:
  struct Taken {
    int signal = 0;
    Handler by = nullptr;
    struct sigaction former{};
  };

  FRUGAL_INLINE void restore() {
    for (; count_ != 0; --count_) {
      Taken const& taken = taken_[count_ - 1];
      struct sigaction now{};
      if (::sigaction(taken.signal, nullptr, &now) != 0 || !is(now, taken.by)) continue;
      ::sigaction(taken.signal, &taken.former, nullptr);
    }
  }

  static bool is(struct sigaction const& action, Handler handler) {
    return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == handler;
  }

  std::mutex mutex_;
  int users_ = 0;
  Handler stand_in_ = SIG_DFL;
  std::array<Taken, 2> taken_{};
  std::size_t count_ = 0;
};

}  // namespace frugal::detail
