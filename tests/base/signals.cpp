// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/signals.hpp>

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace frugal_test::store_signal_handlers {

using frugal::detail::SignalHandlers;
using Handler = void (*)(int);

int ours = 0;
int theirs = 0;
void ours_hears(int) { ++ours; }
void theirs_hears(int) { ++theirs; }
void stands_in(int) {}

Handler handler_of(int signal) {
  struct sigaction now{};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler;
}

/// The program's own handling of SIGUSR2, for the duration of a test.
struct Program {
  explicit Program(Handler handler) {
    ours = theirs = 0;
    struct sigaction action{};
    action.sa_handler = handler;
    ::sigaction(SIGUSR2, &action, &former);
  }
  Program(Program const&) = delete;
  ~Program() { ::sigaction(SIGUSR2, &former, nullptr); }
  struct sigaction former{};
};

void take(SignalHandlers& all) { all.take(SIGUSR2, ours_hears); }
void take_if_default(SignalHandlers& all) { all.take_if_default(SIGUSR2, ours_hears); }

TEST_CASE("the first user takes a signal, and the last restores the former handler") {
  Program const program(theirs_hears);
  SignalHandlers handlers;
  handlers.join(take);
  handlers.join([](SignalHandlers&) { FAIL("it is taken"); });
  ::raise(SIGUSR2);
  handlers.release();
  ::raise(SIGUSR2);
  CHECK(ours == 2);
  CHECK(theirs == 0);
  handlers.release();
  ::raise(SIGUSR2);
  CHECK(ours == 2);
  CHECK(theirs == 1);
  handlers.join(take);
  ::raise(SIGUSR2);
  CHECK(ours == 3);
  handlers.release();
}

TEST_CASE("a signal that the program handles or ignores is left to it on request") {
  for (Handler const own : {Handler{theirs_hears}, Handler{SIG_IGN}}) {
    Program const program(own);
    SignalHandlers handlers;
    handlers.join(take_if_default);
    CHECK((handler_of(SIGUSR2) == own));
    handlers.release();
    CHECK((handler_of(SIGUSR2) == own));
  }
  Program const program(SIG_DFL);
  SignalHandlers handlers;
  handlers.join(take_if_default);
  CHECK((handler_of(SIGUSR2) == ours_hears));
  handlers.release();
  CHECK((handler_of(SIGUSR2) == SIG_DFL));
}

TEST_CASE("a handler that the program has installed meanwhile stays") {
  Program const program(SIG_DFL);
  SignalHandlers handlers;
  handlers.join(take);
  Program const later(theirs_hears);
  handlers.release();
  CHECK((handler_of(SIGUSR2) == theirs_hears));
}

TEST_CASE("a stand-in for the default action is never restored as a former handler") {
  Program const program(SIG_DFL);
  SignalHandlers handlers;
  handlers.join(take);
  handlers.release(stands_in);
  CHECK((handler_of(SIGUSR2) == stands_in));
  handlers.join(take);
  CHECK((handler_of(SIGUSR2) == ours_hears));
  handlers.release();
  CHECK((handler_of(SIGUSR2) == SIG_DFL));
}

TEST_CASE("a program's own handler is restored, and nothing stands in for it") {
  Program const program(theirs_hears);
  SignalHandlers handlers;
  handlers.join(take);
  handlers.release(stands_in);
  CHECK((handler_of(SIGUSR2) == theirs_hears));
}

TEST_CASE("what only looks in puts back the stand-in of an earlier user") {
  Program const program(SIG_DFL);
  SignalHandlers handlers;
  handlers.join(take);
  handlers.release(stands_in);
  handlers.join(take);
  CHECK((handler_of(SIGUSR2) == ours_hears));
  handlers.put_back();
  CHECK((handler_of(SIGUSR2) == stands_in));
  // The program's own default action is no stand-in.
  Program const later(SIG_DFL);
  handlers.join(take);
  handlers.put_back();
  CHECK((handler_of(SIGUSR2) == SIG_DFL));
}

}  // namespace frugal_test::store_signal_handlers

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
