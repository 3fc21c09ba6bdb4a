// SPDX-License-Identifier: Apache-2.0
// needs: images
#include <doctest/doctest.h>

#include <frugal/data/image/decode.hpp>

#include <fstream>
#include <string>

#include "files.hpp"
#include "support/files.hpp"

namespace frugal_test::image_decode {

using namespace frugal_test::image;
using frugal::Channels;
using frugal::decode_image;

TEST_CASE("an image is a tensor of channels, rows and columns, in the decoder's memory") {
  for (auto const* name : {"png RGB rgb", "png RGBA as_stored", "png L as_stored", "jpeg 420"}) {
    Json const& each = case_of(name);
    at::Tensor const image = decode_image(bytes_of(each), options_of(each));
    auto const shape = each.at("shape").get<std::vector<std::int64_t>>();
    CHECK(image.sizes() == at::IntArrayRef({shape[2], shape[0], shape[1]}));
    CHECK((image.scalar_type() == at::kByte));
    CHECK(image.permute({1, 2, 0}).is_contiguous());
    at::Tensor const expected =
        at::tensor(each.at("pixels").get<std::vector<int>>(), at::kInt).view(shape);
    CHECK((image.permute({1, 2, 0}).to(at::kInt) - expected).abs().max().item<int>() <= 1);
  }
}

TEST_CASE("16 bits are uint16 if they are kept") {
  Json const& each = case_of("png 16 bits of 3, kept");
  at::Tensor const image = decode_image(bytes_of(each), options_of(each));
  CHECK((image.scalar_type() == at::kUInt16));
  at::Tensor const expected =
      at::tensor(each.at("pixels").get<std::vector<int>>(), at::kInt).view({7, 13, 3});
  CHECK(at::equal(image.permute({1, 2, 0}).to(at::kInt), expected));
  auto const file = frugal::encode_png(image);
  CHECK(at::equal(decode_image(file, options_of(each)).to(at::kInt), image.to(at::kInt)));
}

TEST_CASE("a tensor of any strides survives a PNG file") {
  at::Tensor const image =
      at::arange(3 * 10 * 12, at::kInt).remainder(256).to(at::kByte).view({3, 10, 12});
  for (at::Tensor const& each : {image, image.permute({1, 2, 0}).contiguous().permute({2, 0, 1}),
                                 image.flip(2).slice(1, 2, 9, 3), image.narrow(0, 1, 1)}) {
    auto const read = decode_image(frugal::encode_png(each), {.channels = Channels::as_stored});
    CHECK(at::equal(read, each));
  }
}

TEST_CASE("stacked images are a contiguous batch") {
  auto const image = decode_image(file_of("png RGB rgb"));
  at::Tensor const batch = at::stack({image, image});
  CHECK(at::equal(batch[1], image));
  CHECK(batch.is_contiguous());
}

TEST_CASE("a file is read by its path, which errors name") {
  support::TemporaryFolder const folder;
  auto const bytes = file_of("jpeg 420");
  auto const write = [&](std::string const& name, std::size_t size) {
    std::ofstream(folder / name, std::ios::binary)
        .write(reinterpret_cast<char const*>(bytes.data()), static_cast<std::streamsize>(size));
  };
  write("whole.jpg", bytes.size());
  write("cut.jpg", 300);
  CHECK(at::equal(frugal::read_image(folder / "whole.jpg"), decode_image(bytes)));
  auto const fault =
      fault_of<frugal::DataError>([&] { return frugal::read_image(folder / "cut.jpg"); });
  CHECK(fault.where == (folder / "cut.jpg").string() + ", byte 300");
}

TEST_CASE("a tensor that is no image is refused") {
  auto const dtype =
      fault_of<frugal::DtypeError>([] { return frugal::encode_png(at::zeros({3, 2, 2})); });
  CHECK(dtype.why == "it has dtype Float");
  auto const shape = fault_of<frugal::ShapeError>(
      [] { return frugal::encode_jpeg(at::zeros({2, 2}, at::kByte)); });
  CHECK(shape.why == "it is [2, 2] Byte");
}

}  // namespace frugal_test::image_decode
