// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_writer.hpp>

#include "core/loop/stand_ins.hpp"

#include <limits>

namespace frugal_test::state_state_dict {

using namespace frugal_test::loop;

TEST_CASE("two state dicts are equal if every value and every bit of every tensor is") {
  auto const memory_of = [](double number, at::Tensor const& tensor) {
    StateDict memory;
    StateWriter writer(memory);
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
  CHECK_FALSE(memory_of(1, tensor) == StateDict());
  CHECK(memory_of(1, tensor.view({2, 2}).t()) ==
        memory_of(1, tensor.view({2, 2}).t().contiguous()));
}

}  // namespace frugal_test::state_state_dict
