// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/model/stored_weights.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

namespace frugal_test::model_stored_weights {

using frugal::detail::packed_strides;
using frugal::detail::StoredWeight;
using frugal::detail::StoredWeights;

TEST_CASE("a tensor at an address where its type cannot be read is copied, and others are not") {
  alignas(8) std::array<std::byte, 20> bytes{};
  std::array<float, 4> const numbers{1, 2, 3, 4};
  for (std::size_t const offset : {0U, 1U, 4U}) {
    CAPTURE(offset);
    std::memcpy(bytes.data() + offset, numbers.data(), sizeof numbers);
    StoredWeight const weight{.name = "w",
                              .type_name = "F32",
                              .type = at::kFloat,
                              .sizes = {2, 2},
                              .strides = {1, 2},
                              .bytes = std::span(bytes).subspan(offset, sizeof numbers)};
    at::Tensor const tensor = weight.tensor();
    CHECK(tensor.equal(at::tensor({1.0F, 3.0F, 2.0F, 4.0F}).view({2, 2})));
    CHECK((tensor.const_data_ptr() == bytes.data() + offset) == (offset != 1));
    CHECK(weight.type_and_shape() == "F32 [2, 2]");
  }
}

TEST_CASE("weights are found by name, and a second of one name is not taken") {
  StoredWeights weights("file");
  CHECK(weights.add({.name = "a", .type_name = "F32"}));
  CHECK(weights.add({.name = "b", .type_name = "F16"}));
  CHECK_FALSE(weights.add({.name = "a", .type_name = "F64"}));
  CHECK(weights.all().size() == 2);
  CHECK(weights.find("a")->type_name == "F32");
  CHECK(weights.find("c") == nullptr);
}

TEST_CASE("strides of a tensor without gaps") {
  CHECK(packed_strides({}).empty());
  CHECK(packed_strides({7}) == std::vector<std::int64_t>{1});
  CHECK(packed_strides({2, 3, 4}) == std::vector<std::int64_t>{12, 4, 1});
  CHECK(packed_strides({2, 0, 4}) == std::vector<std::int64_t>{4, 4, 1});
}

}  // namespace frugal_test::model_stored_weights
