// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>

#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/recompute/frame.hpp>

namespace frugal::detail {

using torch::nn::AnyModule;
using torch::nn::AnyValue;
using Arguments = std::vector<AnyValue>;

/// AnyModule takes its arguments one by one; its overload for a vector is private.
AnyValue call_any(AnyModule& module, Arguments arguments);

/// Consecutive members of a Sequential in one forward pass, each applied to the previous result: a
/// frame that grows while it is recorded.
class ChainFrame final : public Frame {
 public:
  explicit ChainFrame(Arguments const& inputs) : inputs_(inputs) {}

  AnyValue add(AnyModule const& module, Arguments arguments);
  void require_unchanged(Arguments& inputs, std::string const& who) const {
    inputs_.require_unchanged(inputs, who);
  }

 private:
  struct Link {
    AnyModule module;
    Surroundings surroundings;
  };

  void call_again() override {
    Arguments arguments = inputs_.restored();
    std::vector<at::Tensor> buffers;
    for (Link const& link : links_) {
      for (at::Tensor& buffer : link.module.ptr()->buffers()) buffers.push_back(std::move(buffer));
    }
    KeepBuffers const keep(std::move(buffers));
    for (Link& link : links_) {
      Within const then(link.surroundings);
      AnyValue result = call_any(link.module, std::move(arguments));
      arguments.clear();
      arguments.push_back(std::move(result));
    }
  }

  KeptInputs<Arguments> inputs_;
  std::vector<Link> links_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/recompute/chain.ipp>
#endif
