// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/auto_batch.hpp>

#include <torch/nn/modules/linear.h>

#include <stdexcept>

namespace frugal_test::policy_auto_batch_memory {

/// A scripted memory.
struct FakeMemory {
  std::int64_t has = 1000;
  std::int64_t took = 0;
  int failures = 0;
  std::int64_t room() const { return has; }
  void begin() { took = 0; }
  std::int64_t taken() const { return took; }
  void after_failure() { ++failures; }
};

TEST_CASE("a step fits if it neither fails nor uses the margin") {
  FakeMemory memory;
  auto const takes = [&](std::int64_t bytes) {
    return frugal::detail::fits(memory, 0.25, [&](std::int64_t most) {
      CHECK(most == 750);
      memory.took = bytes;
      if (bytes > memory.has) TORCH_CHECK_WITH(OutOfMemoryError, false, "too much");
    });
  };
  CHECK(takes(750));
  CHECK_FALSE(takes(751));
  CHECK(memory.failures == 0);
  CHECK_FALSE(takes(1001));
  CHECK(memory.failures == 1);
  CHECK_THROWS_AS(
      frugal::detail::fits(memory, 0, [](std::int64_t) { throw std::domain_error(""); }),
      std::domain_error);
}

TEST_CASE("the CPU's memory is the module's and later allocations, up to the limit") {
  frugal::detail::HostMeter::install();
  torch::nn::Linear net(100, 10);  // 4040 bytes
  frugal::detail::HostMemory memory(10000, *net);
  memory.begin();
  CHECK(memory.taken() == 4040);
  auto const step = [&](std::int64_t bytes) {
    return frugal::detail::fits(memory, 0.2, [&](std::int64_t most) {
      CHECK(most == 8000);
      auto const limit = memory.limit(most);
      at::empty({bytes}, at::kByte);
    });
  };
  CHECK(step(3960));
  CHECK(memory.taken() == 8000);
  CHECK_FALSE(step(3961));
  memory.forgive(100);
  CHECK(step(4060));
  CHECK_FALSE(step(4061));
}

}  // namespace frugal_test::policy_auto_batch_memory
