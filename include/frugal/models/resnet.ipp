// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/models/resnet.hpp>

#include <torch/nn/init.h>

#include <frugal/inline.hpp>
#include <frugal/models/parts.hpp>

namespace frugal::detail {

FRUGAL_INLINE torch::nn::Conv2d resnet_convolution(std::int64_t inputs, std::int64_t outputs,
                                                   std::int64_t kernel, std::int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(inputs, outputs, kernel)
                               .stride(stride)
                               .padding(kernel / 2)
                               .bias(false));
}

FRUGAL_INLINE torch::nn::Sequential resnet_stage(std::int64_t inputs, std::int64_t width,
                                                 std::int64_t blocks, std::int64_t stride,
                                                 bool bottleneck) {
  torch::nn::Sequential stage;
  for (std::int64_t i = 0; i < blocks; ++i) {
    stage->push_back(models::ResNetBlock(i == 0 ? inputs : width * (bottleneck ? 4 : 1), width,
                                         i == 0 ? stride : 1, bottleneck));
  }
  return stage;
}

}  // namespace frugal::detail

namespace frugal::models {

FRUGAL_INLINE ResNetBlockImpl::ResNetBlockImpl(std::int64_t inputs, std::int64_t width,
                                               std::int64_t stride, bool bottleneck) {
  using detail::resnet_convolution;
  std::int64_t const outputs = width * (bottleneck ? 4 : 1);
  auto const norm = [&](char const* name, std::int64_t of) {
    return register_module(name, torch::nn::BatchNorm2d(of));
  };
  if (bottleneck) {
    conv1 = register_module("conv1", resnet_convolution(inputs, width, 1, 1));
    bn1 = norm("bn1", width);
    conv2 = register_module("conv2", resnet_convolution(width, width, 3, stride));
    bn2 = norm("bn2", width);
    conv3 = register_module("conv3", resnet_convolution(width, outputs, 1, 1));
    bn3 = norm("bn3", outputs);
  } else {
    conv1 = register_module("conv1", resnet_convolution(inputs, width, 3, stride));
    bn1 = norm("bn1", width);
    conv2 = register_module("conv2", resnet_convolution(width, width, 3, 1));
    bn2 = norm("bn2", width);
  }
  if (stride != 1 || inputs != outputs) {
    downsample = register_module(
        "downsample", torch::nn::Sequential(resnet_convolution(inputs, outputs, 1, stride),
                                            torch::nn::BatchNorm2d(outputs)));
  }
}

FRUGAL_INLINE at::Tensor ResNetBlockImpl::forward(at::Tensor const& x_BCHW) {
  at::Tensor y = bn2(conv2(at::relu(bn1(conv1(x_BCHW)))));
  if (!conv3.is_empty()) y = bn3(conv3(at::relu(y)));
  return at::relu(y + (downsample.is_empty() ? x_BCHW : downsample->forward(x_BCHW)));
}

FRUGAL_INLINE ResNetImpl::ResNetImpl(ResNetOptions const& options) {
  auto const& blocks = options.blocks;
  detail::require_positive({{"the number of blocks of a stage", blocks[0]},
                            {"the number of blocks of a stage", blocks[1]},
                            {"the number of blocks of a stage", blocks[2]},
                            {"the number of blocks of a stage", blocks[3]},
                            {"the number of classes", options.classes},
                            {"the number of channels", options.channels}},
                           "ResNet");
  bool const narrow = options.bottleneck;
  std::int64_t const wider = narrow ? 4 : 1;
  conv1 = register_module("conv1", detail::resnet_convolution(options.channels, 64, 7, 2));
  bn1 = register_module("bn1", torch::nn::BatchNorm2d(64));
  layer1 = register_module("layer1", detail::resnet_stage(64, 64, blocks[0], 1, narrow));
  layer2 = register_module("layer2", detail::resnet_stage(64 * wider, 128, blocks[1], 2, narrow));
  layer3 = register_module("layer3", detail::resnet_stage(128 * wider, 256, blocks[2], 2, narrow));
  layer4 = register_module("layer4", detail::resnet_stage(256 * wider, 512, blocks[3], 2, narrow));
  fc = register_module("fc", torch::nn::Linear(512 * wider, options.classes));
  apply([](torch::nn::Module& part) {
    if (auto* const convolution = dynamic_cast<torch::nn::Conv2dImpl*>(&part)) {
      torch::nn::init::kaiming_normal_(convolution->weight, 0.0, torch::kFanOut, torch::kReLU);
    }
  });
}

FRUGAL_INLINE at::Tensor ResNetImpl::forward(at::Tensor const& x_BCHW) {
  at::Tensor x = at::max_pool2d(at::relu(bn1(conv1(x_BCHW))), {3, 3}, {2, 2}, {1, 1});
  x = layer4->forward(layer3->forward(layer2->forward(layer1->forward(x))));
  return fc(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
}

}  // namespace frugal::models
