// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/error.hpp>

namespace frugal_test::state_tensor_part {

using frugal::StateDict;
using frugal::StateError;
using frugal::StateReader;
using frugal::StateWriter;
using frugal::TensorPart;
using frugal::detail::in_memory_order;

/// A tensor whose memory is not in the order of its dimensions.
at::Tensor turned() { return at::arange(12, at::kFloat).view({3, 4}).t(); }

TEST_CASE("a part is taken of a tensor that was saved whole, in the order of memory") {
  StateDict memory;
  StateWriter writer(memory);
  writer("moment", turned().contiguous());  // as a file has it
  StateReader reader(memory);
  at::Tensor part = at::zeros({5});
  at::Tensor undefined;
  reader.part("moment", part, TensorPart::of(turned(), 4, 5));
  StateReader(memory).part("moment", undefined, TensorPart::of(turned(), 0, 2));
  CHECK(part.equal(at::arange(4, 9, at::kFloat)));
  CHECK(undefined.equal(at::arange(2, at::kFloat)));
  CHECK_FALSE(reader.unread());
}

TEST_CASE("a writer makes it whole, or keeps it as it is") {
  TensorPart const which = TensorPart::of(turned(), 4, 5);
  at::Tensor const mine = in_memory_order(turned()).narrow(0, 4, 5);
  StateDict kept;
  StateWriter(kept).part("moment", mine, which);
  at::Tensor again = at::zeros({5});
  StateReader(kept).part("moment", again, which);
  CHECK(again.equal(mine));

  StateDict whole;
  StateWriter writer(whole);
  writer.whole = [&](at::Tensor const& part, TensorPart const& of) {
    CHECK(part.equal(mine));
    CHECK(of.text() == "elements 4 to 9 of 12");
    return turned();
  };
  writer.part("moment", mine, which);
  writer.part("not begun", at::Tensor(), which);
  CHECK(whole.tensors.at("moment").equal(turned()));
  StateReader reader(whole);
  at::Tensor absent = at::zeros({5});
  reader.part("not begun", absent, which);
  CHECK_FALSE(absent.defined());
}

TEST_CASE("a part of another shape does not load") {
  StateDict memory;
  StateWriter writer(memory);
  writer("moment", at::zeros({7}));
  StateReader reader(memory);
  at::Tensor part = at::zeros({5});
  CHECK_THROWS_WITH_AS(reader.part("moment", part, TensorPart::of(turned(), 4, 5)),
                       doctest::Contains("saved as [7] Float, here it is [5] Float"), StateError);
}

}  // namespace frugal_test::state_tensor_part
