// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/sampling/order.hpp>

#include <frugal/data/sampling/buckets.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <span>
#include <vector>

static_assert(frugal::Order<frugal::Pass> && frugal::Order<frugal::BucketPass>);
static_assert(!frugal::Order<int>);

namespace {

/// What any user of the concept does: the samples of an epoch, batch by batch.
template <frugal::Order O>
std::vector<std::uint64_t> read(O order, frugal::Cursor const& cursor) {
  order.seek(cursor);
  std::vector<std::uint64_t> all, batch;
  for (auto slice = order.advance(); slice.count != 0; slice = order.advance()) {
    batch.resize(slice.count);
    order.indices(slice, std::span(batch));
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

}  // namespace

TEST_CASE("an order gives every sample once, and a seek the rest of the same order") {
  frugal::Pass const pass(10, {.batch = 3}, "ten");
  auto const all = read(pass, {.seed = 5, .epoch = 2});
  CHECK(std::set(all.begin(), all.end()).size() == 10);
  auto const rest = read(pass, {.seed = 5, .epoch = 2, .position = 4});
  CHECK(rest == std::vector(all.begin() + 4, all.end()));
}
