// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/policy/skipped_windows.hpp>

#include <vector>

namespace frugal_test::policy_precision_flag_queue {

using frugal::detail::FlagQueue;

at::Tensor flag(int value) { return at::full({}, value, at::kFloat); }

std::vector<bool> read(FlagQueue& queue, std::vector<int> const& flags) {
  std::vector<bool> all;
  for (int const each : flags) all.push_back(queue.next(flag(each)));
  return all;
}

TEST_CASE("a flag in host memory is read at once") {
  FlagQueue queue;
  CHECK((read(queue, {0, 1, 0, 1}) == std::vector{false, true, false, true}));
}

TEST_CASE("a flag with a lag is read that many windows later") {
  FlagQueue queue(2);
  CHECK((read(queue, {1, 0, 1, 0, 0, 0}) == std::vector{false, false, true, false, true, false}));
}

TEST_CASE("a flag that is overwritten after it was enqueued keeps its value") {
  FlagQueue queue(1);
  at::Tensor const shared = flag(1);
  CHECK_FALSE(queue.next(shared));
  shared.zero_();
  CHECK(queue.next(shared));
  CHECK_FALSE(queue.next(shared));
}

TEST_CASE("pending flags survive a resume") {
  frugal::StateDict memory;
  FlagQueue before(2);
  read(before, {1, 0, 1});
  frugal::StateWriter writer(memory);
  before.persist(writer);
  FlagQueue after(2);
  frugal::StateReader reader(memory);
  after.persist(reader);
  std::vector<int> const rest{0, 1, 0, 0};
  CHECK((read(after, rest) == read(before, rest)));
}

}  // namespace frugal_test::policy_precision_flag_queue
