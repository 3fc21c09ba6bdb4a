// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <string>

#include <frugal/checkpoint/dtype.hpp>

namespace frugal::detail {

/// A tensor as it is written: in host memory, without gaps. Name and tensor have to outlive it.
/// FormatError for a type that the format lacks.
TensorView stored_view(std::string const& name, at::Tensor const& tensor);

/// A stored tensor, to be copied from: it lies where the file lies, and goes with it. Undefined for
/// a type that LibTorch lacks.
at::Tensor tensor_in_file(TensorView const& view);

/// "F32 [128, 784]", as errors name it.
std::string type_and_shape(at::Tensor const& tensor);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/stored_tensor.ipp>
#endif
