// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace frugal::models {

/// The numbers of a vision transformer; the defaults are those of torchvision's vit_b_16.
struct ViTOptions {
  std::int64_t image = 224;  ///< pixels of each side
  std::int64_t patch = 16;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;
  std::int64_t intermediate = 3072;
  std::int64_t classes = 1000;
  std::int64_t channels = 3;
  double dropout = 0;
  double attention_dropout = 0;
  double eps = 1e-6;
};

/// One matrix for queries, keys and values, as in torch.nn.MultiheadAttention.
struct ViTAttentionImpl : torch::nn::Module {
  explicit ViTAttentionImpl(ViTOptions const& options);
  at::Tensor forward(at::Tensor const& x_BTW);

  at::Tensor in_proj_weight, in_proj_bias;
  torch::nn::Linear out_proj;
  std::int64_t head_width;
  double dropout;
};
TORCH_MODULE(ViTAttention);

struct ViTMlpImpl : torch::nn::Module {
  explicit ViTMlpImpl(ViTOptions const& options);
  at::Tensor forward(at::Tensor const& x_BTW);

  torch::nn::Linear up, down;
  torch::nn::Dropout dropout;
};
TORCH_MODULE(ViTMlp);

struct ViTLayerImpl : torch::nn::Module {
  explicit ViTLayerImpl(ViTOptions const& options);
  at::Tensor forward(at::Tensor const& x_BTW);

  torch::nn::LayerNorm ln_1, ln_2;
  ViTAttention self_attention;
  torch::nn::Dropout dropout;
  ViTMlp mlp;
};
TORCH_MODULE(ViTLayer);

struct ViTEncoderImpl : torch::nn::Module {
  explicit ViTEncoderImpl(ViTOptions const& options);
  at::Tensor forward(at::Tensor const& x_BTW);

  at::Tensor pos_embedding;
  torch::nn::Dropout dropout;
  torch::nn::Sequential layers;
  torch::nn::LayerNorm ln;
};
TORCH_MODULE(ViTEncoder);

/// Images [B, C, H, W] of the size that the options name to logits [B, classes]. Its tensors have the
/// names of torchvision's VisionTransformer. ShapeError for images of another size.
struct ViTImpl : torch::nn::Module {
  explicit ViTImpl(ViTOptions const& options = {});
  at::Tensor forward(at::Tensor const& x_BCHW);

  ViTOptions options;
  torch::nn::Conv2d conv_proj;
  at::Tensor class_token;
  ViTEncoder encoder;
  torch::nn::Sequential heads;
};
TORCH_MODULE(ViT);

}  // namespace frugal::models

#ifndef FRUGAL_COMPILED
#include <frugal/models/vit.ipp>
#endif
