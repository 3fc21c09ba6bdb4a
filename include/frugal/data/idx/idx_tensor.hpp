// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/idx/idx.hpp>

#include <ATen/ATen.h>

namespace frugal {

/// The array as a host tensor of its own shape and element type, without a copy.
at::Tensor to_tensor(IdxArray array);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/idx/idx_tensor.ipp>
#endif
