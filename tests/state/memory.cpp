// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/state/memory.hpp>
#include <frugal/state/memory_writer.hpp>

#include "loop/stand_ins.hpp"

#include <limits>

namespace frugal_test::state_memory {

using namespace frugal_test::loop;

TEST_CASE("two memories are equal when every value and every bit of every tensor is") {
  auto const memory_of = [](double number, at::Tensor const& tensor) {
    Memory memory;
    MemoryWriter writer(memory);
    writer("number", number);
    writer("tensor", tensor);
    return memory;
  };
  double const nan = std::numeric_limits<double>::quiet_NaN();
  at::Tensor const tensor = at::arange(4, at::kFloat);
  CHECK(memory_of(nan, at::full({2}, nan)) == memory_of(nan, at::full({2}, nan)));
  CHECK_FALSE(memory_of(1, tensor) == memory_of(2, tensor));
  CHECK_FALSE(memory_of(1, tensor) == memory_of(1, tensor + 1));
  CHECK_FALSE(memory_of(1, tensor) == memory_of(1, tensor.view({2, 2})));
  CHECK_FALSE(memory_of(1, tensor) == memory_of(1, tensor.to(at::kDouble)));
  CHECK_FALSE(memory_of(1, tensor) == Memory());
  CHECK(memory_of(1, tensor.view({2, 2}).t()) ==
        memory_of(1, tensor.view({2, 2}).t().contiguous()));
}

}  // namespace frugal_test::state_memory
