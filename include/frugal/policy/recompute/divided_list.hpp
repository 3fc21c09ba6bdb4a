// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>

namespace frugal::detail {

/// The stand-in for the members of a ModuleList that several processes divide. each() gives it the
/// input of the first one, and gets the output of the last one.
struct DividedMember : torch::nn::Module {
  using Call =
      std::function<at::Tensor(std::shared_ptr<torch::nn::Module>& member, at::Tensor input)>;
  virtual at::Tensor call_all(at::Tensor input, Call const& call) = 0;
};

[[noreturn]] void refuse_divided();

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/recompute/divided_list.ipp>
#endif
