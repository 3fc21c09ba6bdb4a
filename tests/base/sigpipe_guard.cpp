// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/sigpipe_guard.hpp>

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace frugal_test::store_sigpipe_guard {

using frugal::detail::SigpipeGuard;

std::sig_atomic_t volatile signals = 0;

/// A pipe without a reader, and a count of the signals to this thread.
class Broken {
 public:
  Broken() {
    signals = 0;
    REQUIRE(::pipe(ends_.data()) == 0);
    ::close(ends_[0]);
    struct sigaction counts{};
    counts.sa_handler = [](int) { signals = signals + 1; };
    ::sigaction(SIGPIPE, &counts, &before_);
  }
  ~Broken() {
    ::sigaction(SIGPIPE, &before_, nullptr);
    ::close(ends_[1]);
  }
  Broken(Broken const&) = delete;
  Broken& operator=(Broken const&) = delete;

  int write() const { return ::write(ends_[1], "a", 1) == 1 ? 0 : errno; }

 private:
  std::array<int, 2> ends_{};
  struct sigaction before_{};
};

TEST_CASE("under the guard a write to a broken pipe fails, and no signal comes then or later") {
  Broken const pipe;
  {
    SigpipeGuard const quiet;
    CHECK(pipe.write() == EPIPE);
    CHECK(pipe.write() == EPIPE);
    errno = EPIPE;
  }
  CHECK(errno == EPIPE);
  CHECK(signals == 0);
}

TEST_CASE("after the guard the signal is handled as before") {
  Broken const pipe;
  {
    SigpipeGuard const quiet;
  }
  CHECK(pipe.write() == EPIPE);
  CHECK(signals == 1);
}

TEST_CASE("a signal that was pending before the guard stays pending") {
  Broken const pipe;
  sigset_t only;
  sigset_t before;
  sigemptyset(&only);
  sigaddset(&only, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &only, &before);
  CHECK(pipe.write() == EPIPE);
  {
    SigpipeGuard const quiet;
    CHECK(pipe.write() == EPIPE);
  }
  CHECK(signals == 0);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  CHECK(signals == 1);
}

TEST_CASE("without a broken pipe the guard changes nothing") {
  sigset_t before;
  sigset_t after;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &before);
  {
    SigpipeGuard const quiet;
  }
  ::pthread_sigmask(SIG_BLOCK, nullptr, &after);
  CHECK(sigismember(&before, SIGPIPE) == sigismember(&after, SIGPIPE));
}

}  // namespace frugal_test::store_sigpipe_guard
