// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace frugal::detail {

/// "[32, 784] Float", for messages.
std::string shape_text(at::Tensor const& tensor);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/source/shape_text.ipp>
#endif
