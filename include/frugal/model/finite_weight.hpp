// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <string>

namespace frugal::detail {

/// ModuleError for a number of a weight that is not finite. `name`: of the layer, or empty.
void require_finite(at::Tensor const& weight, std::string const& name, char const* where);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/finite_weight.ipp>
#endif
