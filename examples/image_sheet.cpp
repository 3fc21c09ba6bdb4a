// SPDX-License-Identifier: Apache-2.0
// needs: images
// Writes a contact sheet: eight pictures, and in each row below them what a transform makes of
// them. image_sheet OUT.png [FOLDER] takes drawn pictures, or those of a folder with a folder per
// class.
//
// Shapes: B pictures, 3 channels, H rows, W columns.
#include <frugal/data/image/augment.hpp>
#include <frugal/data/image/color.hpp>
#include <frugal/data/image/folder.hpp>
#include <frugal/data/image/geometry.hpp>
#include <frugal/data/image/mix.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace fr = frugal;

constexpr std::int64_t side = 96, count = 8;

/// Sky, sun, hills, a house and stripes, drawn by number: [3, side, side].
at::Tensor picture(std::uint64_t number) {
  fr::Draw draw({.index = number}, fr::draw_stream("picture"));
  at::Tensor const y = at::linspace(0, 1, side).view({side, 1}).expand({side, side});
  at::Tensor const x = at::linspace(0, 1, side).view({1, side}).expand({side, side});
  auto const color = [&] {
    return at::tensor({draw.uniform(), draw.uniform(), draw.uniform()}, at::kFloat).view({3, 1, 1});
  };
  at::Tensor image = color() * 0.5 + 0.5 * (1 - y);
  auto const fill = [&](at::Tensor const& where) { image = at::where(where, color(), image); };
  double const sun_x = draw.uniform(0.15, 0.85), sun_y = draw.uniform(0.1, 0.35);
  fill((x - sun_x).square() + (y - sun_y).square() < 0.008);
  for (double const base : {0.55, 0.7}) {
    double const phase = draw.uniform(0, 6);
    fill(y > base + 0.1 * (x * draw.uniform(5, 12) + phase).sin());
  }
  double const left = draw.uniform(0.1, 0.6);
  fill((x > left).logical_and(x < left + 0.28).logical_and(y > 0.55).logical_and(y < 0.85));
  fill(((x - left - 0.14).abs() < (y - 0.38) * 1.1).logical_and(y < 0.55));
  fill((y > 0.88).logical_and((x * 48).floor().remainder(2) < 1));
  return image.clamp(0, 1).mul(255).to(at::kByte);
}

fr::Batch pictures(std::string const& folder) {
  std::vector<at::Tensor> images, labels;
  if (folder.empty()) {
    for (std::uint64_t i = 0; i < count; ++i) images.push_back(picture(i));
    return {at::stack(images), at::arange(count)};
  }
  fr::ImageFolder const set(folder);
  fr::Augment const square{fr::ResizeShorter{.size = side}, fr::CenterCrop{side, side}};
  for (std::uint64_t i = 0; i < count; ++i) {
    images.push_back(square(set.get(i * set.size() / count).data));
  }
  return {at::stack(images), at::arange(count)};
}

/// Images of a row next to each other, with a white line around them: [3, side + 2, ...].
at::Tensor strip(at::Tensor images) {
  if (images.is_floating_point()) images = images.clamp(0, 1).mul(255).to(at::kByte);
  images = fr::resize(images, side, side, {.interpolation = fr::Interpolation::nearest});
  return at::cat(at::constant_pad_nd(images, {1, 1, 1, 1}, 255).unbind(0), 2);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "image_sheet OUT.png [FOLDER]\n";
    return 2;
  }
  try {
    fr::Batch const batch = pictures(argc > 2 ? argv[2] : "");
    std::vector<fr::SampleKey> keys;
    for (std::uint64_t i = 0; i < count; ++i) keys.push_back({.index = i, .seed = 42, .epoch = 1});
    auto const shown = [&](auto const&... transforms) {
      return strip(fr::Augment(transforms...)(batch, keys).data);
    };
    // The rows of docs/data/image.md, from top to bottom.
    std::vector<at::Tensor> const rows{
        strip(batch.data),
        shown(fr::Resize{26, 26}),
        shown(fr::Resize{26, 26, {.antialias = false}}),
        shown(fr::CenterCrop{64, 64}),
        shown(fr::RandomCrop{.height = side, .width = side, .padding = 16}),
        shown(fr::RandomResizedCrop{.height = side, .width = side}),
        shown(fr::RandomFlip{}),
        shown(fr::ColorJitter{.brightness = 0.5, .contrast = 0.5}),
        shown(fr::ColorJitter{.saturation = 1, .hue = 0.5}),
        shown(fr::ToFloat{}, fr::MixUp{.classes = count, .alpha = 1}),
        shown(fr::CutMix{.classes = count}),
        shown(fr::Mosaic{.classes = count}),
    };
    auto const file = fr::encode_png(at::cat(rows, 1), {.compression = 9});
    std::ofstream(argv[1], std::ios::binary)
        .write(reinterpret_cast<char const*>(file.data()),
               static_cast<std::streamsize>(file.size()));
    std::cout << argv[1] << ": " << file.size() / 1000 << " kB\n";
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
