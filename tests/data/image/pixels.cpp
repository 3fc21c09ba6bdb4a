// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/image/pixels.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::image_pixels {

using frugal::Channels;
using frugal::oriented;
using frugal::RawImage;
using frugal::with_channels;
using Bytes = std::vector<std::uint8_t>;

//  1 2 3
//  4 5 6
RawImage six() { return {.height = 2, .width = 3, .channels = 1, .bytes = {1, 2, 3, 4, 5, 6}}; }

TEST_CASE("each EXIF orientation is undone") {
  // Section 4.6.4: where row 0 and column 0 of the stored image are seen.
  CHECK(oriented(six(), 1).bytes == Bytes{1, 2, 3, 4, 5, 6});
  CHECK(oriented(six(), 2).bytes == Bytes{3, 2, 1, 6, 5, 4});
  CHECK(oriented(six(), 3).bytes == Bytes{6, 5, 4, 3, 2, 1});
  CHECK(oriented(six(), 4).bytes == Bytes{4, 5, 6, 1, 2, 3});
  CHECK(oriented(six(), 5).bytes == Bytes{1, 4, 2, 5, 3, 6});
  CHECK(oriented(six(), 6).bytes == Bytes{4, 1, 5, 2, 6, 3});
  CHECK(oriented(six(), 7).bytes == Bytes{6, 3, 5, 2, 4, 1});
  CHECK(oriented(six(), 8).bytes == Bytes{3, 6, 2, 5, 1, 4});
  for (int i = 1; i <= 8; ++i) CHECK(oriented(six(), i).height == (i < 5 ? 2 : 3));
  CHECK(oriented(six(), 0) == six());
  CHECK(oriented(six(), 9) == six());
}

TEST_CASE("channels of a pixel stay together when an image is turned") {
  RawImage const two{.height = 1, .width = 2, .channels = 3, .bytes = {1, 2, 3, 4, 5, 6}};
  CHECK(oriented(two, 3).bytes == Bytes{4, 5, 6, 1, 2, 3});
}

TEST_CASE("channels are repeated, left out, or weighed to grey") {
  RawImage const grey{.height = 1, .width = 1, .channels = 1, .bytes = {7}};
  RawImage const grey_alpha{.height = 1, .width = 1, .channels = 2, .bytes = {7, 9}};
  RawImage const rgb{.height = 1, .width = 1, .channels = 3, .bytes = {100, 150, 200}};
  RawImage const rgba{.height = 1, .width = 1, .channels = 4, .bytes = {100, 150, 200, 9}};
  CHECK(with_channels(grey, Channels::rgb).bytes == Bytes{7, 7, 7});
  CHECK(with_channels(grey, Channels::rgba).bytes == Bytes{7, 7, 7, 255});
  CHECK(with_channels(grey_alpha, Channels::grey).bytes == Bytes{7});
  CHECK(with_channels(grey_alpha, Channels::rgba).bytes == Bytes{7, 7, 7, 9});
  CHECK(with_channels(rgb, Channels::rgba).bytes == Bytes{100, 150, 200, 255});
  CHECK(with_channels(rgba, Channels::rgb).bytes == Bytes{100, 150, 200});
  // 0.299 * 100 + 0.587 * 150 + 0.114 * 200 = 140.75
  CHECK(with_channels(rgb, Channels::grey).bytes == Bytes{141});
  CHECK(with_channels(rgba, Channels::as_stored) == rgba);
}

TEST_CASE("white stays white in grey, at 8 and at 16 bits") {
  RawImage const white{.height = 1, .width = 1, .channels = 3, .bytes = Bytes(3, 255)};
  RawImage const wide{.height = 1, .width = 1, .channels = 3, .bits = 16, .bytes = Bytes(6, 255)};
  CHECK(with_channels(white, Channels::grey).bytes == Bytes{255});
  CHECK(with_channels(wide, Channels::grey).bytes == Bytes{255, 255});
  CHECK(with_channels(wide, Channels::rgba).bytes == Bytes(8, 255));
}

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

}  // namespace frugal_test::image_pixels
