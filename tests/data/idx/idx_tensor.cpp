// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/data/idx/idx_tensor.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>

namespace frugal_test::data_idx_tensor {

TEST_CASE("an IDX array becomes a tensor with its type and shape without a copy") {
  using Kind = std::pair<char, at::ScalarType>;
  for (auto const& [code, dtype] :
       {Kind{0x08, at::kByte}, Kind{0x09, at::kChar}, Kind{0x0b, at::kShort}, Kind{0x0c, at::kInt},
        Kind{0x0d, at::kFloat}, Kind{0x0e, at::kDouble}}) {
    std::string bytes("\0\0?\2\0\0\0\3\0\0\0\2", 12);
    bytes[2] = code;
    bytes += std::string(6 * c10::elementSize(dtype), '\1');
    std::istringstream input(bytes);
    auto array = frugal::read_idx(input, "test.idx");
    void const* const data = array.data.get();
    auto const tensor = frugal::to_tensor(std::move(array));
    CHECK((tensor.scalar_type() == dtype));
    CHECK(tensor.sizes() == at::IntArrayRef({3, 2}));
    CHECK(tensor.const_data_ptr() == data);
  }
}

TEST_CASE("the elements of an IDX tensor are those of the file, row by row") {
  std::istringstream input(std::string("\0\0\x0b\2\0\0\0\2\0\0\0\2", 12) +
                           std::string("\0\1\0\2\1\0\xff\xff", 8));
  auto const tensor = frugal::to_tensor(frugal::read_idx(input, "test.idx"));
  CHECK(at::equal(tensor, at::tensor({1, 2, 256, -1}, at::kShort).view({2, 2})));
}

}  // namespace frugal_test::data_idx_tensor
