// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

namespace frugal {
class ModelConfig;
}

namespace frugal::detail {

/// torch::nn::Linear by the operator of Python's: that of C++ adds its bias in a pass of its own if the
/// input has three dimensions. Adapters find the layer by its weight either way.
inline at::Tensor linear(torch::nn::Linear const& layer, at::Tensor const& x) {
  return at::linear(x, layer->weight, layer->bias);
}

/// Rows of a table of embeddings. DataError if an index has no row, with both numbers; a GPU finds that
/// out later, and says so in words of its own.
at::Tensor embedded(torch::nn::Embedding& table, at::Tensor const& indices, char const* model);

/// Token ids are integers [B, T] with at least one token, and end within the positions of a model;
/// `before` tokens precede them. DtypeError or ShapeError if not.
void require_ids(at::Tensor const& ids_BT, std::int64_t before, std::int64_t positions,
                 char const* model);

/// SettingsError unless each number is positive.
void require_positive(std::initializer_list<std::pair<char const*, std::int64_t>> numbers,
                      char const* model);

/// SettingsError unless a model's width is divided by its heads.
void require_divides(std::int64_t heads, std::int64_t width, char const* model);

/// Initial values as in transformers: weights of linear layers and embeddings are normal, biases and the
/// row of the padding are 0.
void draw_normal(torch::nn::Module& module, double deviation);

/// A head without bias whose weight is that of a table of embeddings, under both of their names.
torch::nn::Linear tied_head(torch::nn::Embedding const& table);

// A config.json may ask for a computation that the model does not do. Its weights would fit, and the
// outputs be wrong.

/// SettingsError if the config has another text under a key.
void require_config(ModelConfig const& config, char const* key, char const* text);

/// SettingsError if the config has true, or for `standard` false, under a key.
void require_config_off(ModelConfig const& config, char const* key, bool standard = false);

/// x [B, T, H * D] as [B, H, T, D]. The number of heads is that of x, so that a layer may lose some by
/// pruning.
inline at::Tensor heads_of(at::Tensor const& x_BTW, std::int64_t head_width) {
  return x_BTW.unflatten(2, {-1, head_width}).transpose(1, 2);
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/models/parts.ipp>
#endif
