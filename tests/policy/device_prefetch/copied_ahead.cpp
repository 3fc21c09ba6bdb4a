// SPDX-License-Identifier: Apache-2.0
// CopiedAhead on the CPU, where it is the source itself; tests/device has a device to copy to.
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/device_prefetch/copied_ahead.hpp>

#include <doctest/doctest.h>

#include "data/sources.hpp"
#include "support/running.hpp"

namespace frugal_test::policy_device_placed {

using namespace frugal_test::data_sources;

TEST_CASE("on the CPU the batches are the source's own, read one at a time") {
  frugal::TensorDataset source(numbered(20), {.batch = 4, .shuffle = true});
  frugal::TensorDataset same_source(numbered(20), {.batch = 4, .shuffle = true});
  frugal::CopiedAhead placed(source, 2);
  c10::Device const device(c10::kCPU);
  placed.follow(device);
  CHECK(placed.samples() == 20);
  CHECK(placed.batches() == 5);
  for (std::uint64_t const position : {0U, 8U, 16U}) {
    frugal::Cursor const cursor{.seed = 3, .epoch = 1, .position = position};
    CHECK(same(epoch_of(placed, cursor), epoch_of(same_source, cursor)));
  }
  placed.seek({});
  auto const first = placed.next();
  CHECK(source.next()->target.size(0) == 4);
  CHECK(rest(placed).size() == 3);  // one batch was read past it
}

TEST_CASE("on the CPU CopiedAhead adds no operator to a batch") {
  frugal::TensorDataset source(numbered(20), {.batch = 4, .shuffle = true});
  frugal::CopiedAhead placed(source, 2);
  c10::Device const device(c10::kCPU);
  placed.follow(device);
  placed.seek({});
  source.seek({});
  auto const bare = support::operators_of([&] { source.next(); });
  CHECK(support::operators_of([&] { placed.next(); }) == bare);
}

}  // namespace frugal_test::policy_device_placed
