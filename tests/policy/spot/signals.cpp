// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/policy/spot/signals.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace frugal_test::spot_signals {

using frugal::detail::PreemptionSignals;

int mine = 0;
void handler_of_mine(int) { ++mine; }

/// Installs the program's own signal handler for the duration of a test.
struct OwnHandler {
  explicit OwnHandler(int signal) : signal_(signal) {
    mine = 0;
    struct sigaction action{};
    action.sa_handler = handler_of_mine;
    ::sigaction(signal_, &action, &former_);
  }
  ~OwnHandler() { ::sigaction(signal_, &former_, nullptr); }
  int signal_;
  struct sigaction former_{};
};

TEST_CASE("SIGTERM sets the flag and does nothing else") {
  OwnHandler const own(SIGTERM);
  PreemptionSignals const signals;
  CHECK_FALSE(signals.requested());
  ::raise(SIGTERM);
  CHECK(signals.requested());
  CHECK(PreemptionSignals::name() == "SIGTERM");
  ::raise(SIGTERM);  // a second one
  CHECK(signals.requested());
  CHECK(mine == 0);
}

TEST_CASE("the former handler is restored afterwards") {
  OwnHandler const own(SIGTERM);
  {
    PreemptionSignals const signals;
  }
  ::raise(SIGTERM);
  CHECK(mine == 1);
}

TEST_CASE("a new watch begins without the previous one's signal") {
  OwnHandler const own(SIGTERM);
  {
    PreemptionSignals const signals;
    ::raise(SIGTERM);
  }
  CHECK_FALSE(PreemptionSignals().requested());
}

TEST_CASE("SIGUSR1 is handled in a SLURM job, and elsewhere not") {
  OwnHandler const own(SIGUSR1);
  ::unsetenv("SLURM_JOB_ID");
  {
    PreemptionSignals const signals;
    ::raise(SIGUSR1);
    CHECK_FALSE(signals.requested());
    CHECK(mine == 1);
  }
  ::setenv("SLURM_JOB_ID", "42", 1);
  {
    PreemptionSignals const signals;
    ::raise(SIGUSR1);
    CHECK(signals.requested());
    CHECK(PreemptionSignals::name() == "SIGUSR1");
    CHECK(mine == 1);
  }
  ::unsetenv("SLURM_JOB_ID");
  ::raise(SIGUSR1);
  CHECK(mine == 2);
}

TEST_CASE("two watches at once both see the signal, and the last one restores the handler") {
  OwnHandler const own(SIGTERM);
  auto first = std::make_unique<PreemptionSignals>();
  PreemptionSignals* const second = new PreemptionSignals;
  first.reset();
  ::raise(SIGTERM);
  CHECK(second->requested());
  CHECK(mine == 0);
  delete second;
  ::raise(SIGTERM);
  CHECK(mine == 1);
}

TEST_CASE("a process that is about to end keeps the handler") {
  struct sigaction before{};
  ::sigaction(SIGTERM, nullptr, &before);
  // In a child process, because this cannot be undone.
  pid_t const child = ::fork();
  if (child == 0) {
    {
      PreemptionSignals signals;
      signals.keep();
    }
    ::raise(SIGTERM);
    std::_Exit(75);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 75);
}

}  // namespace frugal_test::spot_signals
