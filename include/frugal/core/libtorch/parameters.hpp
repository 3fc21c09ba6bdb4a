// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/error.hpp>

namespace frugal {

/// The torch::nn::Module behind a module, a holder or a pointer. Throws ModuleError for an empty
/// holder or pointer.
template <class M>
torch::nn::Module& base_module(M& module) {
  if constexpr (std::is_base_of_v<torch::nn::Module, M>) {
    return module;
  } else {
    if constexpr (requires { module.ptr(); }) {
      if (!module.is_empty()) return *module.ptr();
    } else {
      if (module) return *module;
    }
    throw ModuleError({.what = "there is no module",
                       .where = "fit",
                       .why = "the holder or pointer is empty",
                       .fix = "Give the trainer one that holds a module."});
  }
}

/// Calls forward on a module, directly or through its holder.
template <class M, class... Inputs>
decltype(auto) forward(M& module, Inputs&&... inputs) {
  if constexpr (requires { module.forward(std::forward<Inputs>(inputs)...); }) {
    return module.forward(std::forward<Inputs>(inputs)...);
  } else if constexpr (requires { module->forward(std::forward<Inputs>(inputs)...); }) {
    return module->forward(std::forward<Inputs>(inputs)...);
  } else {
    static_assert(
        sizeof(M) == 0,
        "frugal: the module has no forward that takes the data of a batch. Write `at::Tensor "
        "forward(at::Tensor x)` in it, or `forward_batch(batch)` if it needs more than the "
        "data, or an objective that calls the module itself.");
    return at::Tensor{};
  }
}

/// A module's parameters that a run may train, each tensor once, in the order of named_parameters():
/// all but the fixed ones.
///
/// Collected once when fit begins: walking the module tree allocates, and a step must not.
struct Parameters {
  std::vector<std::string> names;
  std::vector<at::Tensor> tensors;
  /// Other names of tied tensors, by their place in `tensors`: a pattern that selects one selects the
  /// tensor.
  std::multimap<std::size_t, std::string> more_names{};

  static Parameters of(torch::nn::Module const& module);

  std::size_t size() const { return tensors.size(); }

  /// Whether `selects(name)` is true of a name of a tensor.
  template <class Selects>
  bool any_name(std::size_t at, Selects&& selects) const {
    if (selects(names[at])) return true;
    auto const [begin, end] = more_names.equal_range(at);
    for (auto each = begin; each != end; ++each) {
      if (selects(each->second)) return true;
    }
    return false;
  }

  void reset_gradients() const {
    for (at::Tensor const& tensor : tensors) tensor.mutable_grad().reset();
  }
};

/// The gradients of one window: of those parameters that received one, in parameter order.
class GradientList {
 public:
  void reserve(std::size_t count) { tensors_.reserve(count); }

  void collect(Parameters const& parameters);
  void clear() { tensors_.clear(); }

  std::vector<at::Tensor> const& tensors() const { return tensors_; }
  /// Whether every parameter has a gradient.
  bool complete() const { return complete_; }

 private:
  std::vector<at::Tensor> tensors_;
  bool complete_ = false;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/parameters.ipp>
#endif
