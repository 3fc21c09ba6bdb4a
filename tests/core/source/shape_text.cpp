// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/core/source/shape_text.hpp>

namespace frugal_test::data_shape_text {

using frugal::detail::shape_text;

TEST_CASE("a shape in a message has its sizes and its type") {
  CHECK(shape_text(at::zeros({32, 784})) == "[32, 784] Float");
  CHECK(shape_text(at::zeros({}, at::kLong)) == "[] Long");
  CHECK(shape_text(at::Tensor()) == "undefined");
}

}  // namespace frugal_test::data_shape_text
