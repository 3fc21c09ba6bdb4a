// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// The stand-in for the members of a ModuleList that several processes divide. each() gives it the
/// input of the first one, and gets the output of the last one.
struct DividedMember : torch::nn::Module {
  using Call =
      std::function<at::Tensor(std::shared_ptr<torch::nn::Module>& member, at::Tensor input)>;
  virtual at::Tensor call_all(at::Tensor input, Call const& call) = 0;
};

[[noreturn]] FRUGAL_INLINE void refuse_divided() {
  throw ModuleError({.what = "frugal::each passes on a tuple or vector, and several processes have "
                             "the members of its list",
                     .where = "frugal::each",
                     .why = "one tensor travels from a stage to the next one",
                     .fix = "Pass one tensor from member to member, for example with at::cat."});
}

}  // namespace frugal::detail
