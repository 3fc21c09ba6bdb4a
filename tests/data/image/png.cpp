// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: images
#include <frugal/data/image/png.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <zlib.h>

#include "files.hpp"

namespace frugal_test::image_png {

using namespace frugal_test::image;
using frugal::DataError;
using frugal::decode_png;

TEST_CASE("PNG files are decoded as Pillow decodes them, bit for bit") {
  int compared = 0;
  for (Json const& each : cases()) {
    auto const name = each.at("name").get<std::string>();
    if (!name.starts_with("png")) continue;
    CAPTURE(name);
    auto const image = decode_png(bytes_of(each), options_of(each));
    std::vector<std::uint32_t> const shape{image.height, image.width, image.channels};
    CHECK(shape == each.at("shape").get<std::vector<std::uint32_t>>());
    CHECK(image.bits == each.at("bits"));
    std::vector<int> values;
    for (std::size_t i = 0; i < image.bytes.size(); i += image.bits / 8) {
      std::uint16_t value = image.bytes[i];
      if (image.bits == 16) std::memcpy(&value, image.bytes.data() + i, 2);
      values.push_back(value);
    }
    CHECK(values == each.at("pixels").get<std::vector<int>>());
    ++compared;
  }
  CHECK(compared >= 40);
}

TEST_CASE("every prefix of a PNG file is refused, and every changed byte of its pixels") {
  auto const whole = file_of("png RGB rgb");
  auto const image = decode_png(whole);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK_THROWS_AS(decode_png(std::span(whole).first(size)), DataError);
  }
  std::size_t const data = 8 + 25 + 8;  // signature, IHDR, and the head of IDAT
  for (std::size_t i = data; i < whole.size() - 12; ++i) {
    auto changed = whole;
    changed[i] ^= std::byte{4};
    CAPTURE(i);
    CHECK_THROWS_AS(decode_png(changed), DataError);
  }
}

TEST_CASE("a damaged PNG file is refused with name, byte and libpng's words") {
  auto bytes = file_of("png RGB rgb");
  auto const cut = fault_of<DataError>(
      [&] { return decode_png(std::span(bytes).first(60), {}, "folder/cut.png"); });
  CHECK(cut.what == "the PNG image cannot be decoded");
  CHECK(cut.where == "folder/cut.png, byte 60");
  CHECK(cut.why == "the file ends within a chunk");
  bytes[60] ^= std::byte{1};
  auto const changed = fault_of<DataError>([&] { return decode_png(bytes, {}, "a.png"); });
  CHECK(changed.where.starts_with("a.png, byte "));
  CHECK(!changed.why.empty());
}

TEST_CASE("an image of too many pixels, or more than its file can hold, is refused") {
  auto const bytes = file_of("png RGB rgb");
  CHECK(decode_png(bytes, {.pixels = 7 * 13}).width == 13);
  CHECK(fault_of<DataError>([&] { return decode_png(bytes, {.pixels = 90}, "bomb.png"); }).why ==
        "it claims 13 x 7 pixels, and the limit is 90");
  // The head claims 9,000 x 9,000, with the right checksum.
  auto hostile = bytes;
  auto const put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i)
      hostile[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
  };
  constexpr std::size_t name = 12, width = 16, height = 20, checksum = 29;
  put(width, 9000);
  put(height, 9000);
  put(checksum, static_cast<std::uint32_t>(
                    ::crc32(0, reinterpret_cast<Bytef const*>(hostile.data() + name), 17)));
  auto const fault = fault_of<DataError>([&] { return decode_png(hostile); });
  CHECK(fault.what == "the file cannot hold its image");
}

TEST_CASE("no PNG file is refused") {
  std::vector<std::byte> const text(100, std::byte{'x'});
  CHECK(fault_of<DataError>([&] { return decode_png(text); }).why == "Not a PNG file");
}

}  // namespace frugal_test::image_png
