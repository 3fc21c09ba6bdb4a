// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/periodic_thread.hpp>

#include <atomic>
#include <latch>
#include <limits>

namespace frugal_test::store_periodic_thread {

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

}  // namespace frugal_test::store_periodic_thread
