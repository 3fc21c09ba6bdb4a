// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/state/memory.hpp>
#include <frugal/state/memory_reader.hpp>
#include <frugal/state/memory_writer.hpp>

#include "loop/stand_ins.hpp"

namespace frugal_test::state_memory_writer {

using namespace frugal_test::loop;

TEST_CASE("what was saved does not change with the tensor it was saved from") {
  at::Tensor const tensor = at::ones({2});
  Memory memory;
  MemoryWriter{memory}("value", tensor);
  tensor.fill_(5);
  at::Tensor loaded;
  MemoryReader{memory}("value", loaded);
  CHECK(loaded.equal(at::ones({2})));
  loaded.fill_(7);
  at::Tensor again;
  MemoryReader{memory}("value", again);
  CHECK(again.equal(at::ones({2})));
}

}  // namespace frugal_test::state_memory_writer
