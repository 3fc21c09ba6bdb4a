// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: images
#include <frugal/data/image/decode_pixels.hpp>

#include "files.hpp"
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/data/image/encode.hpp>

#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::image_decode_pixels {

using namespace frugal_test::image;
using frugal::Channels;
using frugal::DataError;
using frugal::decode_jpeg;
using frugal::decode_pixels;
using frugal::decode_png;

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

std::string why_of(std::string const& bytes) {
  return fault_of<DataError>(
             [&] { return decode_pixels(std::as_bytes(std::span(bytes)), {}, "file"); })
      .why;
}

TEST_CASE("the first bytes tell JPEG from PNG") {
  CHECK(decode_pixels(file_of("jpeg 420")).width == 29);
  CHECK(decode_pixels(file_of("png RGB rgb")).width == 13);
}

TEST_CASE("another format is named") {
  CHECK(why_of("") == "it is empty");
  CHECK(why_of("GIF89a...") == "it is a GIF");
  CHECK(why_of("BM......") == "it is a BMP");
  CHECK(why_of("II*.") == "it is a TIFF");
  CHECK(why_of("RIFF1234WEBPVP8 ") == "it is a WebP");
  CHECK(why_of("1234ftypavif") == "it is a HEIF or AVIF");
  CHECK(why_of("<html>") == "its first bytes are neither FF D8 FF nor 89 'PNG'");
}

TEST_CASE("a file is read whole, and one that cannot be read is named") {
  support::TemporaryFolder const folder;
  auto const bytes = file_of("png RGB rgb");
  std::ofstream(folder / "a.png", std::ios::binary)
      .write(reinterpret_cast<char const*>(bytes.data()), std::ptrdiff_t(bytes.size()));
  CHECK(frugal::read_image_file(folder / "a.png") == bytes);

  auto const missing =
      fault_of<DataError>([&] { return frugal::read_image_file(folder / "none.png"); });
  CHECK(missing.where == (folder / "none.png").string());
  CHECK(missing.why == "No such file or directory");
  CHECK(fault_of<DataError>([&] { return frugal::read_image_file(folder.path()); }).why ==
        "it is a folder");
  // A link to itself: asking what it is fails as well.
  std::filesystem::create_symlink("loop.png", folder / "loop.png");
  CHECK(fault_of<DataError>([&] {
          return frugal::read_image_file(folder / "loop.png");
        }).why.starts_with("Too many levels"));
}

}  // namespace frugal_test::image_decode_pixels
