// SPDX-License-Identifier: Apache-2.0
// needs: images
// libFuzzer: any bytes are either refused with a DataError, or give an image of the size that it
// claims, which survives a PNG file unchanged and is the same when it is decoded again. Everything
// else ends the program; the sanitizers check the rest.
#include <frugal/data/image/decode_pixels.hpp>
#include <frugal/data/image/encode.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

#include "demand.hpp"

namespace {

using frugal::Channels;
using frugal::DecodeOptions;
using frugal::RawImage;

using frugal_fuzz::demand;

std::uint32_t count(Channels channels, std::uint32_t otherwise) {
  switch (channels) {
    case Channels::grey:
    case Channels::labels:
      return 1;
    case Channels::rgb:
      return 3;
    case Channels::rgba:
      return 4;
    case Channels::as_stored:
      break;
  }
  return otherwise;
}

}  // namespace

/// The first byte chooses the options, the others are the file.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  unsigned const choice = data[0];
  bool const labels = (choice & 64U) != 0;
  DecodeOptions const options{
      .channels = labels ? Channels::labels : static_cast<Channels>(choice % 4),
      .orient = (choice & 4U) != 0,
      .at_least = (choice & 8U) != 0 ? 16U : 0U,
      .keep_16_bits = (choice & 16U) != 0,
      .accept_damaged = (choice & 32U) != 0,
      .pixels = 1U << 18};
  auto const bytes = std::as_bytes(std::span(data, size)).subspan(1);
  try {
    RawImage const image = frugal::decode_pixels(bytes, options, "fuzz");
    demand(std::uint64_t{image.height} * image.width <= options.pixels, "the limit holds");
    demand(image.height > 0 && image.width > 0, "an image has pixels");
    demand(image.channels == count(options.channels, image.channels) && image.channels <= 4,
           "an image has the channels that are asked for");
    demand(image.bits == 8 || (image.bits == 16 && (options.keep_16_bits || labels)),
           "a value has 8 or 16 bits");
    demand(image.bytes.size() ==
               std::size_t{image.height} * image.width * image.channels * image.bits / 8,
           "an image has the bytes of its size");
    demand(frugal::decode_pixels(bytes, options, "fuzz") == image, "decoding again gives the same");
    auto const copy = frugal::encode_png(image, {.compression = 1});
    demand(
        frugal::decode_png(copy, {.channels = Channels::as_stored, .keep_16_bits = true}) == image,
        "an image is the same after a PNG file");
  } catch (frugal::DataError const& error) {
    demand(!error.fault().what.empty() && error.fault().where.starts_with("fuzz"),
           "a damaged file is refused with what and where");
  }
  return 0;
}
