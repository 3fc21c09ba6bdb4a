// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/model/quantise/quantised_weight.hpp>

#include <cstdint>
#include <vector>

namespace frugal_test::model_quantise_quantised_weight {

using frugal::LayerCall;
using frugal::detail::PatchShape;

TEST_CASE("patches of bytes are those of LibTorch's im2col, whatever the shape") {
  torch::manual_seed(9);
  struct Case {
    std::vector<std::int64_t> stride, padding, dilation, kernel, sides;
  };
  for (Case const& which : std::vector<Case>{{{1, 1}, {0, 0}, {1, 1}, {3, 3}, {7, 9}},
                                             {{1, 1}, {1, 1}, {1, 1}, {3, 3}, {5, 5}},
                                             {{2, 2}, {1, 1}, {1, 1}, {3, 3}, {8, 7}},
                                             {{2, 3}, {2, 0}, {1, 2}, {4, 2}, {9, 11}},
                                             {{3, 2}, {0, 3}, {2, 1}, {2, 5}, {11, 4}},
                                             {{1, 1}, {0, 0}, {1, 1}, {1, 1}, {4, 6}},
                                             {{4, 4}, {3, 3}, {1, 1}, {3, 3}, {5, 5}}}) {
    at::Tensor const image =
        at::randint(-128, 128, {3, which.sides[0], which.sides[1]}).to(at::kChar);
    LayerCall const call{.op = LayerCall::Operator::conv2d,
                         .stride = which.stride,
                         .padding = which.padding,
                         .dilation = which.dilation};
    std::vector<std::int64_t> const input{1, 3, which.sides[0], which.sides[1]};
    std::vector<std::int64_t> const weight{5, 3, which.kernel[0], which.kernel[1]};
    PatchShape const shape = PatchShape::of(call, input, weight);
    at::Tensor const found = at::empty({shape.rows(), shape.positions()}, at::kChar);
    constexpr std::int8_t zero = 7;
    shape.gather(image.const_data_ptr<std::int8_t>(), zero, found.data_ptr<std::int8_t>());
    // im2col pads with 0.
    at::Tensor const expected =
        at::im2col(image.to(at::kFloat).sub_(zero).unsqueeze(0), which.kernel, which.dilation,
                   which.padding, which.stride)
            .squeeze(0)
            .add_(zero);
    REQUIRE(found.sizes() == expected.sizes());
    CHECK(at::equal(found.to(at::kFloat), expected));
  }
}

}  // namespace frugal_test::model_quantise_quantised_weight
