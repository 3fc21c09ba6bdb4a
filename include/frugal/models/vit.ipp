// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/models/vit.hpp>

#include <ATen/core/grad_mode.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <frugal/core/source/batch.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/models/parts.hpp>

namespace frugal::detail {

FRUGAL_INLINE models::ViTOptions const& checked(models::ViTOptions const& options) {
  require_positive({{"the number of layers", options.layers},
                    {"the number of heads", options.heads},
                    {"the width", options.width},
                    {"the intermediate width", options.intermediate},
                    {"the number of classes", options.classes},
                    {"the number of channels", options.channels},
                    {"the size of an image", options.image},
                    {"the size of a patch", options.patch}},
                   "ViT");
  require_divides(options.heads, options.width, "ViT");
  if (options.image % options.patch != 0) {
    throw SettingsError({.what = "patches of " + std::to_string(options.patch) +
                                 " pixels do not divide an image of " +
                                 std::to_string(options.image),
                         .where = "ViT",
                         .why = "pixels at the edge would not be seen",
                         .fix = "Choose an image whose side is a multiple of the patch."});
  }
  return options;
}

FRUGAL_INLINE torch::nn::LayerNorm vit_norm(models::ViTOptions const& options) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({options.width}).eps(options.eps));
}

}  // namespace frugal::detail

namespace frugal::models {

FRUGAL_INLINE ViTAttentionImpl::ViTAttentionImpl(ViTOptions const& options)
    : in_proj_weight(
          register_parameter("in_proj_weight", at::empty({3 * options.width, options.width}))),
      in_proj_bias(register_parameter("in_proj_bias", at::zeros({3 * options.width}))),
      out_proj(register_module("out_proj", torch::nn::Linear(options.width, options.width))),
      head_width(options.width / options.heads),
      dropout(options.attention_dropout) {
  at::NoGradGuard const no_gradients;
  torch::nn::init::xavier_uniform_(in_proj_weight);
  out_proj->bias.zero_();
}

FRUGAL_INLINE at::Tensor ViTAttentionImpl::forward(at::Tensor const& x_BTW) {
  auto const parts = at::linear(x_BTW, in_proj_weight, in_proj_bias).chunk(3, -1);
  at::Tensor const mixed_BHTD = at::scaled_dot_product_attention(
      detail::heads_of(parts[0], head_width), detail::heads_of(parts[1], head_width),
      detail::heads_of(parts[2], head_width), {}, is_training() ? dropout : 0.0);
  return detail::linear(out_proj, mixed_BHTD.transpose(1, 2).flatten(2));
}

FRUGAL_INLINE ViTMlpImpl::ViTMlpImpl(ViTOptions const& options)
    : up(register_module("0", torch::nn::Linear(options.width, options.intermediate))),
      down(register_module("3", torch::nn::Linear(options.intermediate, options.width))),
      dropout(register_module("4", torch::nn::Dropout(options.dropout))) {
  at::NoGradGuard const no_gradients;
  for (torch::nn::Linear const& each : {up, down}) {
    torch::nn::init::xavier_uniform_(each->weight);
    each->bias.normal_(0.0, 1e-6);
  }
}

FRUGAL_INLINE at::Tensor ViTMlpImpl::forward(at::Tensor const& x_BTW) {
  return dropout(detail::linear(down, dropout(at::gelu(detail::linear(up, x_BTW)))));
}

FRUGAL_INLINE ViTLayerImpl::ViTLayerImpl(ViTOptions const& options)
    : ln_1(register_module("ln_1", detail::vit_norm(options))),
      ln_2(nullptr),
      self_attention(register_module("self_attention", ViTAttention(options))),
      dropout(register_module("dropout", torch::nn::Dropout(options.dropout))),
      mlp(nullptr) {
  ln_2 = register_module("ln_2", detail::vit_norm(options));
  mlp = register_module("mlp", ViTMlp(options));
}

FRUGAL_INLINE at::Tensor ViTLayerImpl::forward(at::Tensor const& x_BTW) {
  at::Tensor const attended_BTW = x_BTW + dropout(self_attention(ln_1(x_BTW)));
  return attended_BTW + mlp(ln_2(attended_BTW));
}

FRUGAL_INLINE ViTEncoderImpl::ViTEncoderImpl(ViTOptions const& options)
    : pos_embedding(register_parameter(
          "pos_embedding",
          at::empty({1, (options.image / options.patch) * (options.image / options.patch) + 1,
                     options.width}))),
      dropout(register_module("dropout", torch::nn::Dropout(options.dropout))),
      layers(register_module("layers", torch::nn::Sequential())),
      ln(register_module("ln", detail::vit_norm(options))) {
  at::NoGradGuard const no_gradients;
  pos_embedding.normal_(0.0, 0.02);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    layers->push_back("encoder_layer_" + std::to_string(i), ViTLayer(options));
  }
}

FRUGAL_INLINE at::Tensor ViTEncoderImpl::forward(at::Tensor const& x_BTW) {
  return ln(layers->forward(dropout(x_BTW + pos_embedding)));
}

FRUGAL_INLINE ViTImpl::ViTImpl(ViTOptions const& of)
    : options(detail::checked(of)),
      conv_proj(register_module(
          "conv_proj",
          torch::nn::Conv2d(
              torch::nn::Conv2dOptions(of.channels, of.width, of.patch).stride(of.patch)))),
      class_token(register_parameter("class_token", at::zeros({1, 1, of.width}))),
      encoder(register_module("encoder", ViTEncoder(of))),
      heads(register_module("heads", torch::nn::Sequential())) {
  torch::nn::Linear head(of.width, of.classes);
  heads->push_back("head", head);
  at::NoGradGuard const no_gradients;
  head->weight.zero_();
  head->bias.zero_();
  // torch.nn.init.trunc_normal_, cut off at -2 and 2.
  double const deviation = std::sqrt(1.0 / static_cast<double>(of.channels * of.patch * of.patch));
  double const inside = std::erf(2 / deviation / std::sqrt(2.0));
  conv_proj->weight.uniform_(-inside, inside).erfinv_().mul_(deviation * std::sqrt(2.0));
  conv_proj->weight.clamp_(-2, 2);
  conv_proj->bias.zero_();
}

FRUGAL_INLINE at::Tensor ViTImpl::forward(at::Tensor const& x_BCHW) {
  if (x_BCHW.dim() != 4 || x_BCHW.size(1) != options.channels || x_BCHW.size(2) != options.image ||
      x_BCHW.size(3) != options.image) {
    std::string const side = std::to_string(options.image);
    throw ShapeError({.what = "images are of shape " + detail::shape_text(x_BCHW),
                      .where = "ViT",
                      .why = "the model has a position for each patch of [B, " +
                             std::to_string(options.channels) + ", " + side + ", " + side + "]",
                      .fix = "Scale the images, or set ViTOptions::image to their size."});
  }
  at::Tensor const patches_BTW = conv_proj(x_BCHW).flatten(2).transpose(1, 2);
  at::Tensor const first_B1W = class_token.expand({x_BCHW.size(0), -1, -1});
  return heads->forward(encoder(at::cat({first_B1W, patches_BTW}, 1)).select(1, 0));
}

}  // namespace frugal::models
