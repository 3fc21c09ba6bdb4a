// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/cluster/communicator/wait_limit.hpp>

#include <chrono>
#include <vector>

namespace frugal_test::cluster_wait_limit {

using frugal::detail::BusyTime;
using frugal::detail::WaitLimit;
using namespace std::chrono_literals;
using Busy = std::vector<BusyTime>;

/// Looks as often as it wants to for so long; whether it was over.
bool is_over(WaitLimit& limit, std::chrono::milliseconds time, Busy const& seen) {
  for (auto passed = 0ms; passed < time; passed += 250ms) {
    limit.pass(250ms);
    if (limit.wants_look() && limit.is_over(seen)) return true;
  }
  return false;
}

TEST_CASE("a wait in which nobody is busy ends at its limit") {
  WaitLimit limit(10s, 500ms);
  CHECK_FALSE(is_over(limit, 9750ms, {{}, {}}));
  CHECK(is_over(limit, 1500ms, {{}, {}}));
  WaitLimit unseen(10s, 500ms);  // the store does not answer
  CHECK_FALSE(is_over(unseen, 9750ms, {}));
  CHECK(is_over(unseen, 1500ms, {}));
}

TEST_CASE("looks come often, and at most every few seconds of a long limit") {
  WaitLimit limit(10min, 500ms);
  int looks = 0;
  for (auto passed = 0ms; passed < 10min - 250ms; passed += 250ms) {
    limit.pass(250ms);
    if (!limit.wants_look()) continue;
    ++looks;
    CHECK_FALSE(limit.is_over({{}}));
  }
  CHECK(looks == 119);
}

TEST_CASE("what a rank was busy with between two looks begins the limit again") {
  WaitLimit limit(10s, 500ms);
  CHECK_FALSE(is_over(limit, 9s, {{}, {5, false}}));
  CHECK_FALSE(is_over(limit, 8s, {{}, {2'000'000, false}}));
  CHECK_FALSE(is_over(limit, 8s, {{2'000, false}, {2'000'000, false}}));
  CHECK(is_over(limit, 4s, {{2'000, false}, {2'000'000, false}}));
}

TEST_CASE("a rank that is busy is waited for as long as it beats") {
  WaitLimit limit(10s, 500ms);
  BusyTime busy{.total = 0, .now = true};
  for (int i = 0; i < 100; ++i) {
    busy.total += 2'500'000;
    CHECK_FALSE(is_over(limit, 2500ms, {{}, busy}));
  }
  // It has ended: its total stands still.
  CHECK_FALSE(is_over(limit, 10s, {{}, busy}));
  CHECK(is_over(limit, 5s, {{}, busy}));
}

TEST_CASE("one that waits while a thread of its own writes waits on") {
  // Another rank may wait for what it writes.
  WaitLimit limit(4s, 500ms);
  BusyTime self{.total = 0, .now = true};
  for (int i = 0; i < 20; ++i) {
    self.total += 1'000'000;
    CHECK_FALSE(is_over(limit, 1s, {self, {}}));
  }
}

}  // namespace frugal_test::cluster_wait_limit
