// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/core/state/shard.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/error.hpp>

namespace frugal_test::state_shard {

using frugal::Shard;
using frugal::StateDict;
using frugal::StateError;
using frugal::StateReader;
using frugal::StateWriter;

/// A shard and a whole tensor, as saved by a policy in the second of three processes.
StateDict saved() {
  StateDict memory;
  StateWriter writer(memory);
  writer.shard("part", at::full({2}, 3.0), {.dim = 0, .index = 1, .count = 3});
  writer("whole", at::full({2}, 4.0));
  return memory;
}

TEST_CASE("a shard loads as the shard that was saved") {
  StateDict const memory = saved();
  StateReader reader(memory);
  at::Tensor part;
  at::Tensor whole;
  reader.shard("part", part, {.dim = 0, .index = 1, .count = 3});
  reader("whole", whole);
  CHECK(part.equal(at::full({2}, 3.0)));
  CHECK(whole.equal(at::full({2}, 4.0)));
  CHECK_FALSE(reader.unread());
}

TEST_CASE("a shard is no other shard, and no whole, and a whole is no shard") {
  StateDict const memory = saved();
  StateReader reader(memory);
  at::Tensor tensor;
  CHECK_THROWS_WITH_AS(
      reader.shard("part", tensor, {.dim = 0, .index = 2, .count = 3}),
      doctest::Contains("it is part 2 of 3 along dimension 0, and here part 3 of 3 "
                        "along dimension 0"),
      StateError);
  CHECK_THROWS_WITH_AS(reader.shard("part", tensor, {.dim = 0, .index = 1, .count = 4}),
                       doctest::Contains("here part 2 of 4"), StateError);
  CHECK_THROWS_WITH_AS(reader("part", tensor), doctest::Contains("and the whole one is asked for"),
                       StateError);
  CHECK_THROWS_WITH_AS(
      reader.shard("whole", tensor, {.dim = 1, .index = 0, .count = 3}),
      doctest::Contains("the whole tensor was saved, and here it is part 1 of 3 along dimension 1"),
      StateError);
}

}  // namespace frugal_test::state_shard
