// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/signal_free_thread.hpp>

#include <atomic>
#include <csignal>
#include <latch>
#include <limits>
#include <thread>

namespace frugal_test::store_signal_free_thread {

sigset_t mask_of_this_thread() {
  sigset_t mask;
  sigemptyset(&mask);
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return mask;
}

TEST_CASE("the thread receives none of the signals that stop a run") {
  sigset_t mask;
  sigemptyset(&mask);
  frugal::detail::signal_free_thread([&mask] { mask = mask_of_this_thread(); }).join();
  for (int const signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE, SIGCHLD}) {
    CAPTURE(signal);
    CHECK(sigismember(&mask, signal) == 1);
  }
}

TEST_CASE("a fault in the thread still shows") {
  sigset_t mask;
  sigfillset(&mask);
  frugal::detail::signal_free_thread([&mask] { mask = mask_of_this_thread(); }).join();
  for (int const signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    CAPTURE(signal);
    CHECK(sigismember(&mask, signal) == 0);
  }
}

TEST_CASE("the thread that starts it receives the same signals as before") {
  sigset_t before = mask_of_this_thread();
  frugal::detail::signal_free_thread([] {}).join();
  sigset_t after = mask_of_this_thread();
  for (int signal = 1; signal < 32; ++signal) {
    CAPTURE(signal);
    CHECK(sigismember(&before, signal) == sigismember(&after, signal));
  }
}

using frugal::detail::PeriodicThread;

TEST_CASE("it calls again and again until it is stopped") {
  std::latch three(3);
  std::atomic<int> calls = 0;
  PeriodicThread thread(0, [&] {
    if (++calls <= 3) three.count_down();
  });
  three.wait();  // for ever, if there are no three calls
  thread.stop();
  int const then = calls;
  thread.stop();
  CHECK(calls == then);
}

TEST_CASE("a stop does not wait for the next call, and an endless wait is none") {
  std::atomic<int> calls = 0;
  PeriodicThread(std::numeric_limits<double>::infinity(), [&] { ++calls; }).stop();
  {
    PeriodicThread const thread(1e300, [&] { ++calls; });
  }
  CHECK(calls == 0);
}

}  // namespace frugal_test::store_signal_free_thread
