// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: tensorboard
#include <doctest/doctest.h>

#include <frugal/report/sink/tfevent.hpp>

#include <string>

namespace frugal_test::policy_sink_tfrecord {

using frugal::detail::crc32c;
using frugal::detail::masked_crc32c;
using frugal::detail::tfrecord;

TEST_CASE("CRC-32C has the values of RFC 3720, appendix B.4") {
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) {
    rising += static_cast<char>(i);
    falling += static_cast<char>(31 - i);
  }
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  CHECK(crc32c(rising) == 0x46dd794e);
  CHECK(crc32c(falling) == 0x113fdb5c);
  CHECK(crc32c("") == 0);
}

TEST_CASE("a record has its length and two checksums") {
  std::string const record = tfrecord("hello");
  REQUIRE(record.size() == 8 + 4 + 5 + 4);
  CHECK(record.substr(0, 8) == std::string("\x05\0\0\0\0\0\0\0", 8));
  CHECK(record.substr(12, 5) == "hello");
  auto const number_at = [&](std::size_t at) {
    std::uint32_t number = 0;
    for (std::size_t i = 4; i-- > 0;) {
      number = number << 8U | static_cast<unsigned char>(record[at + i]);
    }
    return number;
  };
  CHECK(number_at(8) == masked_crc32c(record.substr(0, 8)));
  CHECK(number_at(17) == masked_crc32c("hello"));
}

TEST_CASE("a checksum is masked by a rotation and a constant") {
  std::uint32_t const crc = crc32c("foo");
  CHECK(masked_crc32c("foo") ==
        static_cast<std::uint32_t>(((crc >> 15U) | (crc << 17U)) + 2726488792U));
  CHECK(tfrecord("").size() == 16);
}

}  // namespace frugal_test::policy_sink_tfrecord
