// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <array>
#include <cstdint>

namespace frugal::models {

/// A residual network of torchvision. Its last normalization of each block begins at 1
/// (zero_init_residual is off, as there).
struct ResNetOptions {
  std::array<std::int64_t, 4> blocks{2, 2, 2, 2};  ///< of each stage
  bool bottleneck = false;  ///< blocks of three convolutions, four times as wide
  std::int64_t classes = 1000;
  std::int64_t channels = 3;  ///< of the image
};

inline constexpr ResNetOptions resnet18{};
inline constexpr ResNetOptions resnet34{.blocks = {3, 4, 6, 3}};
inline constexpr ResNetOptions resnet50{.blocks = {3, 4, 6, 3}, .bottleneck = true};

/// Two convolutions, or three of which the middle one is narrow, beside a connection past them.
struct ResNetBlockImpl : torch::nn::Module {
  ResNetBlockImpl(std::int64_t inputs, std::int64_t width, std::int64_t stride, bool bottleneck);
  at::Tensor forward(at::Tensor const& x_BCHW);

  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr};  ///< conv3: of a bottleneck
  torch::nn::BatchNorm2d bn1{nullptr}, bn2{nullptr}, bn3{nullptr};
  torch::nn::Sequential downsample{nullptr};  ///< where the block changes the shape
};
TORCH_MODULE(ResNetBlock);

/// Images [B, C, H, W] of any size to logits [B, classes]. Its tensors have the names of torchvision's
/// resnet18, resnet34 and resnet50.
///
///     ResNet net(resnet18);
///     load_weights(net, "resnet18.pth", {.allow_missing = {"*.num_batches_tracked"}});
struct ResNetImpl : torch::nn::Module {
  explicit ResNetImpl(ResNetOptions const& options = {});
  at::Tensor forward(at::Tensor const& x_BCHW);

  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr};
  torch::nn::Sequential layer1{nullptr}, layer2{nullptr}, layer3{nullptr}, layer4{nullptr};
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(ResNet);

}  // namespace frugal::models

#ifndef FRUGAL_COMPILED
#include <frugal/models/resnet.ipp>
#endif
