// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/little_endian.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace frugal_test::data_little_endian {

using frugal::detail::append_le;
using frugal::detail::load_le;

TEST_CASE("numbers are stored from their lowest byte on, at any address") {
  std::vector<std::byte> bytes;
  frugal::detail::append_text(bytes, "x");
  append_le(bytes, std::uint32_t{0x01020304});
  append_le(bytes, -2.5);
  CHECK(bytes.size() == 13);
  CHECK(bytes[1] == std::byte{4});
  CHECK(bytes[4] == std::byte{1});
  CHECK(load_le<std::uint32_t>(bytes, 1) == 0x01020304);
  CHECK(load_le<double>(bytes, 5) == -2.5);
  CHECK(load_le<std::uint8_t>(bytes, 0) == 'x');
}

}  // namespace frugal_test::data_little_endian
