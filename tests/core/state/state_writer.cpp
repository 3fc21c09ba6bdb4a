// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>

#include "core/loop/stand_ins.hpp"

namespace frugal_test::state_state_writer {

using namespace frugal_test::loop;

TEST_CASE("saved values do not change with the tensor they were saved from") {
  at::Tensor const tensor = at::ones({2});
  StateDict memory;
  StateWriter{memory}("value", tensor);
  tensor.fill_(5);
  at::Tensor loaded;
  StateReader{memory}("value", loaded);
  CHECK(loaded.equal(at::ones({2})));
  loaded.fill_(7);
  at::Tensor again;
  StateReader{memory}("value", again);
  CHECK(again.equal(at::ones({2})));
}

}  // namespace frugal_test::state_state_writer
