// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/recompute/frame.hpp>
#include <frugal/core/libtorch/recompute/inputs.hpp>
#include <frugal/core/libtorch/recompute/surroundings.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

using torch::nn::AnyModule;
using torch::nn::AnyValue;
using Arguments = std::vector<AnyValue>;

/// AnyModule takes its arguments one by one; its overload for a vector is private.
FRUGAL_INLINE AnyValue call_any(AnyModule& module, Arguments arguments) {
  auto const with = [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    return module.any_forward(std::move(arguments[Is])...);
  };
  switch (arguments.size()) {
    case 0:
      return with(std::make_index_sequence<0>{});
    case 1:
      return with(std::make_index_sequence<1>{});
    case 2:
      return with(std::make_index_sequence<2>{});
    case 3:
      return with(std::make_index_sequence<3>{});
    case 4:
      return with(std::make_index_sequence<4>{});
    default:
      throw ModuleError({.what = "a segmented Sequential is called with " +
                                 std::to_string(arguments.size()) + " arguments",
                         .where = "Recompute",
                         .why = "it passes on four at most",
                         .fix = "Pass them as a tuple or a vector."});
  }
}

/// Consecutive members of a Sequential in one forward pass, each applied to the previous result: a
/// frame that grows while it is recorded.
class ChainFrame final : public Frame {
 public:
  explicit ChainFrame(Arguments const& inputs) : inputs_(inputs) {}

  FRUGAL_INLINE AnyValue add(AnyModule const& module, Arguments arguments) {
    // Other code may have drawn random numbers since the last link.
    links_.push_back({module, Surroundings(inputs_.devices())});
    return record([&] { return call_any(links_.back().module, std::move(arguments)); });
  }
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
