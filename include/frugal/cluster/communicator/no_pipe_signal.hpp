// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <mutex>

namespace frugal::detail {

/// Gloo writes to a connection whose other end has gone: the system answers with SIGPIPE, which ends the
/// process without a word. Python's interpreter ignores it; while one of these lives, so does this
/// process, unless the program has a handler of its own.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    std::scoped_lock const lock(mutex());
    if (count()++ != 0) return;
    struct sigaction now{};
    changed() = ::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL;
    if (changed()) std::signal(SIGPIPE, SIG_IGN);
  }
  NoPipeSignal(NoPipeSignal const&) = delete;
  NoPipeSignal& operator=(NoPipeSignal const&) = delete;
  ~NoPipeSignal() {
    std::scoped_lock const lock(mutex());
    if (--count() != 0 || !changed()) return;
    struct sigaction now{};
    if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) {
      std::signal(SIGPIPE, SIG_DFL);
    }
  }

 private:
  // Never destroyed: communicators of the environment are not, either.
  static std::mutex& mutex() {
    static auto& one = *new std::mutex;
    return one;
  }
  static int& count() {
    static int number = 0;
    return number;
  }
  static bool& changed() {
    static bool is = false;
    return is;
  }
};

}  // namespace frugal::detail
