// SPDX-License-Identifier: Apache-2.0
// needs: images
// Decodes the JPEG files of a folder, and augments a batch of them, on one thread; prints one line
// of JSON per measurement. bench/data_image.py runs it beside Pillow and torchvision.
//
// Shapes: B images, 3 channels, 224 rows and columns.
#include <frugal/data/image/augment.hpp>
#include <frugal/data/image/color.hpp>
#include <frugal/data/image/decode.hpp>
#include <frugal/data/image/geometry.hpp>

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace fr = frugal;

namespace {

/// Median milliseconds per image of `rounds` rounds over `images` images, printed.
template <class Round>
void measure(char const* name, std::size_t rounds, std::size_t images, Round&& round) {
  std::vector<double> spent;
  round();  // warm
  for (std::size_t r = 0; r < rounds; ++r) {
    auto const begin = std::chrono::steady_clock::now();
    round();
    std::chrono::duration<double, std::milli> const took = std::chrono::steady_clock::now() - begin;
    spent.push_back(took.count() / static_cast<double>(images));
  }
  std::sort(spent.begin(), spent.end());
  std::printf("{\"what\": \"%s\", \"ms\": %.6g}\n", name, spent[spent.size() / 2]);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app{"Decodes and augments the JPEG files of a folder"};
  std::string folder;
  std::size_t rounds = 7;
  app.add_option("folder", folder, "with JPEG files")->required();
  app.add_option("--rounds", rounds, "the median of so many is printed");
  CLI11_PARSE(app, count, arguments);
  at::set_num_threads(1);

  std::vector<std::vector<std::byte>> files;
  std::vector<fr::SampleKey> keys;
  for (auto const& entry : std::filesystem::directory_iterator(folder)) {
    keys.push_back({.index = files.size(), .seed = 42});
    files.push_back(fr::read_image_file(entry.path()));
  }
  auto const all = files.size();

  measure("decode", rounds, all, [&] {
    for (auto const& file : files) fr::decode_image(file);
  });
  measure("decode to 224", rounds, all, [&] {
    for (auto const& file : files) {
      fr::resize_shorter(fr::decode_image(file, {.at_least = 224}), 224);
    }
  });
  fr::Augment const sample{fr::RandomResizedCrop{}, fr::RandomFlip{}, fr::Normalize{}};
  measure("training pipeline", rounds, all, [&] {
    for (std::size_t i = 0; i < all; ++i) sample(fr::decode_image(files[i]), keys[i]);
  });

  std::vector<at::Tensor> images;
  for (auto const& file : files) {
    images.push_back(fr::center_crop(fr::resize_shorter(fr::decode_image(file), 256), 256, 256));
  }
  at::Tensor const batch = at::stack(images);
  auto const augment = [&](char const* name, auto const& transform) {
    measure(name, rounds, all, [&] { transform(batch, keys); });
  };
  augment("crop and flip",
          fr::Augment{fr::RandomCrop{.height = 224, .width = 224}, fr::RandomFlip{}});
  augment("color jitter",
          fr::Augment{fr::ColorJitter{.brightness = 0.4, .contrast = 0.4, .saturation = 0.4}});
  augment("hue", fr::Augment{fr::ColorJitter{.hue = 0.1}});
}
