// SPDX-License-Identifier: Apache-2.0
// Shapes: N images, H rows, W columns.
#pragma once

#include <frugal/data/batch.hpp>
#include <frugal/data/idx/idx.hpp>
#include <frugal/data/idx/idx_tensor.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <ATen/ATen.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>

namespace frugal {

/// The two halves of an MNIST-shaped data set.
enum class Split { train, test };

/// How read_mnist gives its pixels.
enum class Pixels {
  scaled,  ///< float32, 0 to 1: the byte divided by 255
  bytes,   ///< uint8, 0 to 255, a quarter of the memory
};

/// Reads MNIST, Fashion-MNIST or any set stored like them: `train-images-idx3-ubyte`,
/// `train-labels-idx1-ubyte` and their `t10k-` counterparts, each plain or with `.gz`.
///
/// Gives    images [N, 1, H, W] as data and labels [N], int64, as target.
/// Errors   DataError naming the folder where a file is missing, the file and its byte offset
///          where it is damaged, both files where they do not fit; EmptySourceError for no images.
/// Source   Xiao, Rasul, Vollgraf, "Fashion-MNIST" (2017): Debian's dataset-fashion-mnist puts it
///          into /usr/share/datasets/fashion-mnist.
FRUGAL_INLINE Batch read_mnist(std::filesystem::path const& folder, Split split,
                               Pixels pixels = Pixels::scaled) {
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
