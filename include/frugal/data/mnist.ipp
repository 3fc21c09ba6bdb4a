// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/mnist.hpp>

#include <frugal/data/idx.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <ATen/ATen.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace frugal {

FRUGAL_INLINE at::Tensor to_tensor(IdxArray array) {
  auto const dtype = [&] {
    switch (array.type) {
      case IdxType::uint8:
        return at::kByte;
      case IdxType::int8:
        return at::kChar;
      case IdxType::int16:
        return at::kShort;
      case IdxType::int32:
        return at::kInt;
      case IdxType::float32:
        return at::kFloat;
      case IdxType::float64:
        return at::kDouble;
    }
    throw DataError({.what = "an IDX array of unknown element type",
                     .where = "to_tensor",
                     .why = "",
                     .fix = "Give one that read_idx returned."});
  }();
  std::vector<std::int64_t> const shape(array.shape.begin(), array.shape.end());
  std::byte* const data = array.data.release();
  return at::from_blob(
      data, shape, [](void* bytes) { delete[] static_cast<std::byte*>(bytes); }, dtype);
}

FRUGAL_INLINE Batch read_mnist(std::filesystem::path const& folder, Split split, Pixels pixels) {
  auto const find = [&](std::string const& kind) {
    std::string const name = (split == Split::train ? "train-" : "t10k-") + kind;
    for (std::string const& file : std::array{name, name + ".gz"}) {
      if (std::filesystem::exists(folder / file)) return folder / file;
    }
    throw DataError({.what = "neither " + name + " nor " + name + ".gz is there",
                     .where = "folder " + folder.string(),
                     .why = "",
                     .fix = "Install the Debian package dataset-fashion-mnist and give "
                            "/usr/share/datasets/fashion-mnist, or name the folder that has "
                            "the four files."});
  };
  auto const read = [](std::filesystem::path const& file, std::size_t dimensions) {
    IdxArray array = read_idx(file);
    if (array.type != IdxType::uint8 || array.shape.size() != dimensions) {
      throw DataError({.what = "the file holds another kind of array",
                       .where = file.string() + ", byte 2",
                       .why = "expected unsigned bytes in " + std::to_string(dimensions) +
                              " dimensions, found type code " +
                              std::to_string(static_cast<int>(array.type)) + " in " +
                              std::to_string(array.shape.size()),
                       .fix = "Check whether the images and labels files are swapped."});
    }
    return array;
  };
  auto const images_file = find("images-idx3-ubyte");
  auto const labels_file = find("labels-idx1-ubyte");
  at::Tensor const images_NHW = to_tensor(read(images_file, 3));
  at::Tensor const labels_N = to_tensor(read(labels_file, 1));
  if (images_NHW.size(0) != labels_N.size(0)) {
    throw DataError({.what = "there is not one label per image",
                     .where = images_file.string() + ", " + labels_file.string(),
                     .why = std::to_string(images_NHW.size(0)) + " images and " +
                            std::to_string(labels_N.size(0)) + " labels",
                     .fix = "Fetch both files from the same place."});
  }
  if (images_NHW.numel() == 0) {
    throw EmptySourceError({.what = "the file holds no images",
                            .where = images_file.string() + ", byte 4",
                            .why = "one of its dimensions is 0",
                            .fix = "Fetch the file again."});
  }
  at::Tensor images_N1HW = images_NHW.unsqueeze(1);
  if (pixels == Pixels::scaled) images_N1HW = images_N1HW.to(at::kFloat).div_(255);
  return {images_N1HW, labels_N.to(at::kLong)};
}

}  // namespace frugal
