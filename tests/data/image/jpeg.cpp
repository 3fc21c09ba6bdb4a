// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: images
#include <frugal/data/image/encode.hpp>
#include <frugal/data/image/jpeg.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "files.hpp"

namespace frugal_test::image_jpeg {

using namespace frugal_test::image;
using frugal::Channels;
using frugal::DataError;
using frugal::decode_jpeg;

TEST_CASE("JPEG files are decoded as Pillow decodes them, within 1") {
  int compared = 0;
  for (Json const& each : cases()) {
    auto const name = each.at("name").get<std::string>();
    if (!name.starts_with("jpeg")) continue;
    CAPTURE(name);
    auto const image = decode_jpeg(bytes_of(each), options_of(each));
    std::vector<std::uint32_t> const shape{image.height, image.width, image.channels};
    CHECK(shape == each.at("shape").get<std::vector<std::uint32_t>>());
    CHECK(image.bits == 8);
    auto const expected = each.at("pixels").get<std::vector<int>>();
    REQUIRE(image.bytes.size() == expected.size());
    int worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      worst = std::max(worst, std::abs(expected[i] - int{image.bytes[i]}));
    }
    CHECK(worst <= 1);
    ++compared;
  }
  CHECK(compared >= 20);
}

TEST_CASE("orientation is left alone on request") {
  auto const turned = file_of("jpeg orientation 6");
  CHECK(decode_jpeg(turned).height == 11);
  CHECK(decode_jpeg(turned, {.orient = false}).height == 9);
}

TEST_CASE("a cut off JPEG file is refused with name, byte and libjpeg's words") {
  auto const whole = file_of("jpeg 420");
  for (std::size_t const size : {whole.size() - 4, whole.size() / 2, std::size_t{200}}) {
    auto const fault = fault_of<DataError>(
        [&] { return decode_jpeg(std::span(whole).first(size), {}, "folder/cut.jpg"); });
    CHECK(fault.what == "the JPEG image cannot be decoded");
    CHECK(fault.where == "folder/cut.jpg, byte " + std::to_string(size));
    CHECK(fault.why == "Premature end of JPEG file");
  }
}

TEST_CASE("every prefix of a JPEG file is refused, unless it lacks nothing but its end marker") {
  for (auto const* name : {"jpeg 420", "jpeg progressive", "jpeg cmyk", "jpeg grey"}) {
    CAPTURE(name);
    auto const whole = file_of(name);
    auto const image = decode_jpeg(whole);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      CAPTURE(size);
      if (size + 2 >= whole.size()) {
        CHECK(decode_jpeg(std::span(whole).first(size)) == image);
      } else {
        CHECK_THROWS_AS(decode_jpeg(std::span(whole).first(size)), DataError);
      }
    }
  }
}

TEST_CASE("a JPEG file with other bytes in the place of its end marker is refused") {
  // Zeros are codes of pixels: with 3 bytes of a file lost, Pillow decodes other pixels of them.
  for (auto const* name : {"jpeg 420", "jpeg progressive"}) {
    auto const whole = file_of(name);
    for (std::size_t const lost : {2U, 3U, 20U}) {
      for (std::size_t const more : {1U, 2U, 3U, 16U, 1000U}) {
        CAPTURE(name);
        CAPTURE(lost);
        CAPTURE(more);
        std::vector<std::byte> filled(whole.begin(), whole.end() - std::ptrdiff_t(lost));
        filled.resize(filled.size() + more);
        CHECK_THROWS_AS(decode_jpeg(filled), DataError);
      }
    }
  }
}

TEST_CASE("a damaged JPEG file is given as far as it can be decoded, if that is asked for") {
  auto const whole = file_of("jpeg 420");
  auto const image = decode_jpeg(whole);
  auto const part =
      decode_jpeg(std::span(whole).first(whole.size() - 40), {.accept_damaged = true});
  CHECK(part.bytes.size() == image.bytes.size());
  CHECK(std::equal(part.bytes.begin(), part.bytes.begin() + 200, image.bytes.begin()));
  CHECK(part != image);
}

TEST_CASE("bytes between markers do no harm") {
  auto bytes = file_of("jpeg 420");
  auto const image = decode_jpeg(bytes);
  bytes.insert(bytes.end() - 2, 3, std::byte{0});  // before the end marker
  CHECK(decode_jpeg(bytes) == image);
}

TEST_CASE("an image of too many pixels is refused before memory is taken") {
  auto const bytes = file_of("jpeg 420");
  CHECK(decode_jpeg(bytes, {.pixels = 19 * 29}).width == 29);
  auto const fault =
      fault_of<DataError>([&] { return decode_jpeg(bytes, {.pixels = 19 * 29 - 1}, "bomb.jpg"); });
  CHECK(fault.what == "the image is too large");
  CHECK(fault.why == "it claims 29 x 19 pixels, and the limit is 550");
}

TEST_CASE("a file that is too short for its image is refused before memory is taken") {
  auto bytes = file_of("jpeg 420");
  for (std::size_t i = 0; i + 8 < bytes.size();
       ++i) {  // the frame header: FF C0, length, bits, size
    if (bytes[i] != std::byte{0xFF} || bytes[i + 1] != std::byte{0xC0}) continue;
    for (std::size_t const k : {5U, 7U}) bytes[i + k] = std::byte{0x20};  // 8,000 rows and columns
  }
  auto const fault = fault_of<DataError>([&] { return decode_jpeg(bytes); });
  CHECK(fault.what == "the file cannot hold its image");
}

TEST_CASE("no JPEG file, and none of any size, is refused") {
  std::vector<std::byte> const text(100, std::byte{'x'});
  auto const fault = fault_of<DataError>([&] { return decode_jpeg(text, {}, "note.txt"); });
  CHECK(fault.why == "Not a JPEG file: starts with 0x78 0x78");
  CHECK(fault.fix == "Fetch the file again, or leave it out.");
  CHECK_THROWS_AS(decode_jpeg({}), DataError);
}

TEST_CASE("a file of very many scans is refused") {
  auto const whole = file_of("jpeg progressive");
  // Repeat the last scan: FF DA to the end marker.
  std::size_t scan = 0;
  for (std::size_t i = 0; i + 1 < whole.size(); ++i) {
    if (whole[i] == std::byte{0xFF} && whole[i + 1] == std::byte{0xDA}) scan = i;
  }
  REQUIRE(scan > 0);
  std::vector<std::byte> many(whole.begin(), whole.end() - 2);
  for (int i = 0; i < 200; ++i)
    many.insert(many.end(), whole.begin() + std::ptrdiff_t(scan), whole.end() - 2);
  many.insert(many.end(), whole.end() - 2, whole.end());
  auto const fault =
      fault_of<DataError>([&] { return decode_jpeg(many, {.accept_damaged = true}); });
  CHECK(fault.why == "more than 100 scans");
}

}  // namespace frugal_test::image_jpeg
