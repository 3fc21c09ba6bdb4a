// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <string>

namespace frugal::detail {

/// ModuleError for a number of a weight that is not finite. `name`: of the layer, or empty.
void require_finite(at::Tensor const& weight, std::string const& name, char const* where);

/// Takes the weight's numbers out of memory, and the weight out of the module's parameters: another
/// form of it has them. What reads it in another way than by its layer gets NaN.
void drop_weight(torch::nn::Module& layer, at::Tensor weight);

/// Whether drop_weight() was called on it.
bool is_dropped(at::Tensor const& weight);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/finite_weight.ipp>
#endif
