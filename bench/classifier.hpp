// SPDX-License-Identifier: Apache-2.0
// The encoder of examples/finetune with a head over the mean of its tokens, for texts without padding.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "../examples/finetune/encoder.hpp"

namespace frugal_bench {

struct ClassifierImpl : torch::nn::Module {
  explicit ClassifierImpl(finetune::EncoderSizes const& sizes = {})
      : encoder(register_module("encoder", finetune::Encoder(sizes))),
        head(register_module("head", torch::nn::Linear(sizes.width, 6))) {}
  at::Tensor forward(at::Tensor const& ids) { return head(encoder->hidden(ids).mean(1)); }

  finetune::Encoder encoder;
  torch::nn::Linear head;
};
TORCH_MODULE(Classifier);

}  // namespace frugal_bench
