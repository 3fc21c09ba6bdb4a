// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/model/quantize/quantized_weight.hpp>

#include "support/reference.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace frugal_test::model_quantize_ranges {

using namespace frugal_test::support;
using frugal::Entropy;
using frugal::Histogram;
using frugal::Percentile;
using frugal::Range;

TEST_CASE("ranges by percentile and by entropy are ONNX Runtime's") {
  Json const file = reference("quantize.json");
  int percentiles = 0, entropies = 0;
  for (Json const& which : file.at("ranges")) {
    CAPTURE(which.at("name").get<std::string>());
    Histogram const seen{which.at("counts").get<std::vector<double>>(),
                         {which.at("low"), which.at("high")}};
    auto const check = [&](Range const& found, Json const& expected) {
      CHECK(found.low == doctest::Approx(expected.at(0).get<double>()));
      CHECK(found.high == doctest::Approx(expected.at(1).get<double>()));
    };
    if (which.contains("percentile")) {
      ++percentiles;
      check(Percentile{.percent = which.at("percent")}.range(seen), which.at("percentile"));
    } else {
      ++entropies;
      check(Entropy{}.range(seen), which.at("entropy"));
    }
  }
  CHECK(percentiles == 3);
  CHECK(entropies == 2);
}

TEST_CASE("a percentile that is no share is refused") {
  Histogram const seen{{1, 2}, {0, 1}};
  CHECK_THROWS_AS(Percentile{.percent = 0}.range(seen), frugal::SettingsError);
  CHECK_THROWS_AS(Percentile{.percent = 101}.range(seen), frugal::SettingsError);
}

TEST_CASE("inputs add up over batches, in range and histogram") {
  frugal::detail::SeenInput seen;
  CHECK_FALSE(seen.any());
  std::vector<at::Tensor> const batches{at::linspace(-1, 1, 101), at::linspace(0, 3, 50)};
  for (at::Tensor const& each : batches) seen.extend(each);
  for (at::Tensor const& each : batches) seen.count(each, 64, /*symmetric=*/false);
  CHECK(seen.finite());
  Range const all = seen.range(frugal::MinMax{});
  CHECK(all.low == -1);
  CHECK(all.high == 3);
  // Of 151 numbers less than 2 are cut at each end.
  Range const most = seen.range(Percentile{.percent = 98});
  CHECK(most.low >= -1);
  CHECK(most.low < -0.8);
  CHECK(most.high < 3);
  CHECK(most.high > 2.8);
  seen.extend(at::full({1}, std::numeric_limits<double>::quiet_NaN()));
  CHECK_FALSE(seen.finite());
}

}  // namespace frugal_test::model_quantize_ranges

namespace frugal_test::model_quantize_quantized_weight {

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

}  // namespace frugal_test::model_quantize_quantized_weight
