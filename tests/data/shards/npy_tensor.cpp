// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/shards/npy_tensor.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::data_shards_npy_tensor {

TEST_CASE("an array of NumPy becomes a tensor of its shape, type and values") {
  float const values[] = {0, 1, -2, 3.5F, 4, 5};
  std::string bytes = frugal::npy_header(frugal::Dtype::f32, std::vector<std::uint64_t>{2, 3});
  bytes.append(reinterpret_cast<char const*>(values), sizeof values);
  auto const tensor = frugal::to_tensor(frugal::read_npy(std::as_bytes(std::span(bytes)), "x"));
  auto const expected = at::tensor({0.0F, 1.0F, -2.0F, 3.5F, 4.0F, 5.0F}).reshape({2, 3});
  CHECK(at::equal(tensor, expected));
}

TEST_CASE("every type that is read has a tensor, and no elements are no error") {
  for (auto const& [name, dtype] : frugal::detail::npy_types) {
    CAPTURE(name);
    std::string const bytes = frugal::npy_header(dtype, std::vector<std::uint64_t>{0, 3});
    auto const tensor = frugal::to_tensor(frugal::read_npy(std::as_bytes(std::span(bytes)), "x"));
    CHECK(tensor.sizes().vec() == std::vector<std::int64_t>{0, 3});
    CHECK(8 * tensor.element_size() == frugal::dtype_bits(dtype));
  }
}

}  // namespace frugal_test::data_shards_npy_tensor
