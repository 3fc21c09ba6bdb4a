// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: images
#include <frugal/data/image/decode_pixels.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "files.hpp"
#include "support/files.hpp"

namespace frugal_test::image_decode_pixels {

using namespace frugal_test::image;
using frugal::DataError;
using frugal::decode_pixels;

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
