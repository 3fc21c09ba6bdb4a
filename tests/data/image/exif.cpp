// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/image/exif.hpp>

#include <doctest/doctest.h>

#include <span>
#include <string>

namespace frugal_test::image_exif {

int orientation(std::string const& block) {
  return frugal::exif_orientation(std::as_bytes(std::span(block)));
}

std::string number(std::uint32_t value, int width, bool little) {
  std::string out;
  for (int i = 0; i < width; ++i) {
    out.push_back(static_cast<char>(value >> 8 * (little ? i : width - 1 - i)));
  }
  return out;
}

/// A directory of one entry before the orientation, and the orientation.
std::string block(bool little, std::uint32_t tag, std::uint32_t type, std::uint32_t count,
                  std::uint32_t value) {
  auto const two = [&](std::uint32_t v) { return number(v, 2, little); };
  auto const four = [&](std::uint32_t v) { return number(v, 4, little); };
  return (little ? "II" : "MM") + two(42) + four(8) + two(2) +  //
         two(0x0100) + two(4) + four(1) + four(99) +            //
         two(tag) + two(type) + four(count) + two(value) + two(0) + four(0);
}

TEST_CASE("the orientation is read in either byte order") {
  for (std::uint32_t value = 1; value <= 8; ++value) {
    CHECK(orientation(block(true, 0x0112, 3, 1, value)) == static_cast<int>(value));
    CHECK(orientation(block(false, 0x0112, 3, 1, value)) == static_cast<int>(value));
  }
}

TEST_CASE("a block without a valid orientation is upright") {
  CHECK(orientation(block(true, 0x0113, 3, 1, 6)) == 1);
  CHECK(orientation(block(true, 0x0112, 4, 1, 6)) == 1);
  CHECK(orientation(block(true, 0x0112, 3, 2, 6)) == 1);
  CHECK(orientation(block(true, 0x0112, 3, 1, 0)) == 1);
  CHECK(orientation(block(true, 0x0112, 3, 1, 9)) == 1);
  CHECK(orientation("XX" + block(true, 0x0112, 3, 1, 6).substr(2)) == 1);
}

TEST_CASE("a block that ends early, or points beyond itself, is upright") {
  auto const whole = block(false, 0x0112, 3, 1, 6);
  for (std::size_t size = 0; size < whole.size() - 4; ++size)
    CHECK(orientation(whole.substr(0, size)) == 1);
  for (std::uint32_t const offset : {0U, 33U, 60U, 0xFFFFFFFEU, 0xFFFFFFFFU}) {
    auto far = whole;
    far.replace(4, 4, number(offset, 4, false));
    CHECK(orientation(far) == 1);
  }
}

}  // namespace frugal_test::image_exif
