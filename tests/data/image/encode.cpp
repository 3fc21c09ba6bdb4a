// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: images
#include <frugal/data/image/decode_pixels.hpp>
#include <frugal/data/image/encode.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include "files.hpp"

namespace frugal_test::image_encode {

using namespace frugal_test::image;
using frugal::Channels;
using frugal::decode_jpeg;
using frugal::decode_png;
using frugal::encode_jpeg;
using frugal::encode_png;
using frugal::RawImage;

TEST_CASE("an image is the same after a PNG file, whatever its channels and bits") {
  for (std::uint32_t channels = 1; channels <= 4; ++channels) {
    auto const image = gradient(31, 17, channels);
    CHECK(decode_png(encode_png(image), {.channels = Channels::as_stored}) == image);
    RawImage wide = gradient(31, 17, channels);
    wide.bits = 16;
    wide.bytes.resize(wide.bytes.size() * 2, 201);
    CHECK(decode_png(encode_png(wide), {.channels = Channels::as_stored, .keep_16_bits = true}) ==
          wide);
  }
}

TEST_CASE("compression changes the size of a PNG file alone") {
  auto const image = gradient(60, 60, 3);
  auto const plain = encode_png(image, {.compression = 0});
  auto const small = encode_png(image, {.compression = 9});
  CHECK(small.size() < plain.size());
  CHECK(decode_png(plain) == decode_png(small));
}

/// The mean absolute difference.
double difference(RawImage const& a, RawImage const& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.bytes.size(); ++i) sum += std::abs(a.bytes[i] - b.bytes[i]);
  return sum / static_cast<double>(a.bytes.size());
}

RawImage smooth(std::uint32_t side, std::uint32_t channels) {
  RawImage image{.height = side, .width = side, .channels = channels};
  for (std::uint32_t i = 0; i < side * side * channels; ++i) {
    image.bytes.push_back(static_cast<std::uint8_t>(128 + 100 * std::sin(i / channels * 0.002)));
  }
  return image;
}

TEST_CASE("an image is nearly the same after a JPEG file, the nearer the higher the quality") {
  for (std::uint32_t const channels : {1U, 3U}) {
    auto const image = smooth(64, channels);
    frugal::DecodeOptions const as_stored{.channels = Channels::as_stored};
    auto const good = decode_jpeg(encode_jpeg(image, {.quality = 100}), as_stored);
    auto const poor = decode_jpeg(encode_jpeg(image, {.quality = 5}), as_stored);
    CHECK(good.channels == channels);
    CHECK(difference(good, image) < 1.5);
    CHECK(difference(poor, image) > 2 * difference(good, image));
    CHECK(encode_jpeg(image, {.quality = 5}).size() < encode_jpeg(image, {.quality = 100}).size());
  }
}

TEST_CASE("a progressive JPEG file has the pixels of a baseline one") {
  auto const image = smooth(40, 3);
  CHECK(decode_jpeg(encode_jpeg(image, {.progressive = true})) == decode_jpeg(encode_jpeg(image)));
}

TEST_CASE("colors at full size are nearer to the image") {
  auto const image = gradient(64, 64, 3);
  CHECK(difference(decode_jpeg(encode_jpeg(image, {.subsample = false})), image) <
        difference(decode_jpeg(encode_jpeg(image)), image));
}

TEST_CASE("a file beyond one block of the writer is whole") {
  RawImage noise{.height = 300, .width = 300, .channels = 3};
  std::uint32_t state = 1;
  for (int i = 0; i < 300 * 300 * 3; ++i) {
    noise.bytes.push_back(
        static_cast<std::uint8_t>((state = state * 1664525U + 1013904223U) >> 24));
  }
  auto const file = encode_jpeg(noise, {.quality = 100, .subsample = false});
  CHECK(file.size() > 2 * 65536);
  CHECK(difference(decode_jpeg(file), noise) < 1.5);
}

TEST_CASE("an image that a format cannot store is refused") {
  CHECK(fault_of<frugal::ShapeError>([] { return encode_jpeg(gradient(2, 3, 4)); }).fix ==
        "Give it 1 or 3 channels of 8 bits.");
  CHECK_THROWS_AS(encode_png(RawImage{}), frugal::ShapeError);
  auto cut = gradient(2, 3, 3);
  cut.bytes.pop_back();
  CHECK(fault_of<frugal::ShapeError>([&] { return encode_png(cut); }).why ==
        "3 x 2 pixels, 3 channels of 8 bits, 17 bytes");
  CHECK_THROWS_AS(encode_jpeg(gradient(1, 70'000, 1)), frugal::ShapeError);
  CHECK_THROWS_AS(encode_jpeg(gradient(2, 2, 3), {.quality = 0}), frugal::SettingsError);
  CHECK_THROWS_AS(encode_png(gradient(2, 2, 3), {.compression = 10}), frugal::SettingsError);
}

}  // namespace frugal_test::image_encode
