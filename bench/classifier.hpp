// SPDX-License-Identifier: Apache-2.0
// An encoder of the size of all-MiniLM-L6-v2 with a head over the mean of its tokens, for texts without padding.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <frugal/models/bert.hpp>

namespace frugal_bench {

inline constexpr frugal::models::BertOptions minilm{
    .width = 384, .layers = 6, .heads = 12, .intermediate = 1536};

struct ClassifierImpl : torch::nn::Module {
  explicit ClassifierImpl(frugal::models::BertOptions const& options = minilm)
      : encoder(register_module("encoder", frugal::models::Bert(options))),
        head(register_module("head", torch::nn::Linear(options.width, 6))) {}
  at::Tensor forward(at::Tensor const& ids) { return head(encoder(ids).mean(1)); }

  frugal::models::Bert encoder;
  torch::nn::Linear head;
};
TORCH_MODULE(Classifier);

}  // namespace frugal_bench
