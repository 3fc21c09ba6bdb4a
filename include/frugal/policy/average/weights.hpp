// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <frugal/data/batch.hpp>
#include <frugal/error.hpp>
#include <frugal/libtorch/parameters.hpp>

namespace frugal {

/// What a fit with Average leaves: the averaged parameters, and the buffers that the module had
/// when the fit ended. Together they are all tensors of a module, by name.
struct AveragedWeights {
  std::map<std::string, at::Tensor> tensors;
  std::uint64_t taken = 0;  ///< how many weights the average is of

  /// Copies them into a module of the same tensors: the trained one or another. StateError names
  /// the first difference, and then nothing is touched.
  template <class Module>
  void copy_into(Module& module) const {
    torch::nn::Module& target = base_module(module);
    std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
    auto const match = [&](std::string const& name, at::Tensor const& tensor) {
      auto const found = tensors.find(name);
      if (found == tensors.end()) refuse("there is no '" + name + "' in it");
      if (found->second.sizes() != tensor.sizes()) {
        refuse("'" + name + "' is " + detail::shape_text(found->second) + " in it, and " +
               detail::shape_text(tensor) + " in the module");
      }
      pairs.emplace_back(tensor, found->second);
    };
    Parameters const parameters = Parameters::of(target);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      match(parameters.names[i], parameters.tensors[i]);
    }
    for (auto const& item : target.named_buffers()) {
      if (item.value().defined()) match(item.key(), item.value());
    }
    if (pairs.size() != tensors.size()) refuse("it has tensors that the module lacks");
    at::NoGradGuard const no_gradients;
    for (auto& [tensor, average] : pairs) tensor.copy_(average);
  }

 private:
  [[noreturn]] static void refuse(std::string why) {
    throw StateError({.what = "the averaged weights do not fit the module",
                      .where = "AveragedWeights::copy_into",
                      .why = std::move(why),
                      .fix = "Give a module that is made as the trained one was."});
  }
};

namespace detail {

/// Lends parameters the memory of other tensors, and gives each its own back: nothing is copied.
/// A graph that was made before, and has saved the parameters, goes backward after it as it would
/// have: neither their values nor their versions have changed.
class Lent {
 public:
  explicit Lent(std::vector<at::Tensor> const& parameters) : parameters_(parameters) {
    own_.reserve(parameters.size());
  }
  Lent(Lent const&) = delete;
  Lent& operator=(Lent const&) = delete;
  ~Lent() {
    for (std::size_t i = 0; i < own_.size(); ++i) parameters_[i].set_data(own_[i]);
  }

  /// Apart from the constructor, so that what was lent is given back if this fails in its middle.
  void lend(std::vector<at::Tensor> const& others) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      own_.push_back(parameters_[i].detach());
      parameters_[i].set_data(others[i]);
    }
  }

 private:
  std::vector<at::Tensor> const& parameters_;
  std::vector<at::Tensor> own_;
};

}  // namespace detail
}  // namespace frugal
