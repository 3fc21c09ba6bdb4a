// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/libtorch/tensor_map.hpp>

// Parameters that are trained as a whole beside an adapter (AlsoTrain): its head. There is one of
// each, so two adapters cannot have their own.
namespace frugal::detail {

/// The name of the adapter that a tensor is the head of.
TensorMap<std::string>& heads();

/// Whether a parameter is in the file of this adapter, besides its matrices.
bool is_head_of(at::Tensor const& tensor, std::string_view adapter);

/// The parameters that patterns select by one of their names, each once.
std::vector<at::Tensor> parameters_named(torch::nn::Module const& module,
                                         std::vector<std::string_view> const& patterns);

/// SettingsError if one of these parameters is the head of another adapter of the module, which
/// training or loading this one would overwrite.
void require_own_heads(torch::nn::Module& module, std::vector<std::string_view> const& patterns,
                       std::string_view adapter);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/lora/heads.ipp>
#endif
