// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/npy.hpp>

#include <ATen/ATen.h>

namespace frugal {

/// The array as a host tensor of its shape and type, in memory of its own.
at::Tensor to_tensor(NpyArray const& array);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/npy_tensor.ipp>
#endif
