// SPDX-License-Identifier: Apache-2.0
// Shapes: N images, H rows, W columns.
#pragma once

#include <frugal/core/source/batch.hpp>

#include <ATen/ATen.h>

#include <filesystem>

namespace frugal {

struct IdxArray;  // idx.hpp

/// The array as a host tensor of its own shape and element type, without a copy.
at::Tensor to_tensor(IdxArray array);

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
Batch read_mnist(std::filesystem::path const& folder, Split split, Pixels pixels = Pixels::scaled);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/mnist.ipp>
#endif
