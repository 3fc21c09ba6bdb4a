// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

namespace frugal::detail {

/// Takes the weight's numbers out of memory, and the weight out of the module's parameters: another
/// form of it has them. What reads it in another way than by its layer gets NaN.
void drop_weight(torch::nn::Module& layer, at::Tensor weight);

/// Whether drop_weight() was called on it.
bool is_dropped(at::Tensor const& weight);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/dropped_weight.ipp>
#endif
