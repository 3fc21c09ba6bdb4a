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

#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/source/batch.hpp>

namespace frugal {

/// The result of a fit with Average: the averaged parameters, those of 16 bits in FP32, and the module's
/// buffers at the end of the fit. Together they are all tensors of the module, by name.
struct AveragedWeights {
  std::map<std::string, at::Tensor> tensors;
  std::uint64_t taken = 0;  ///< number of weights in the average

  /// Copies them into a module with the same tensors: the trained one or another. StateError names
  /// the first difference; then nothing is changed.
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
    if (pairs.size() != tensors.size()) refuse("there are tensors that the module lacks");
    for (auto const& [tensor, average] : pairs) {
      if (!detail::beyond_range(average, tensor.scalar_type())) continue;
      refuse(std::string("a weight in it is beyond the numbers of the module's type, ") +
             at::toString(tensor.scalar_type()));
    }
    at::NoGradGuard const no_gradients;
    for (auto& [tensor, average] : pairs) tensor.copy_(average);
  }

 private:
  [[noreturn]] static void refuse(std::string why);
};

namespace detail {

/// The type in which a parameter is averaged; Undefined if it has no mean of its own type. In 16 bits
/// what a step adds to an average is less than half of its last bit, and lost.
at::ScalarType type_of_average(at::Tensor const& parameter);
std::uint64_t bytes_of_average(at::Tensor const& parameter);

/// Swaps the memory of parameters with that of other tensors, and back, without copying. A graph
/// that has saved the parameters still runs backward afterwards: neither their values nor their
/// versions have changed.
class [[nodiscard]] Lent {
 public:
  explicit Lent(std::vector<at::Tensor> const& parameters) : parameters_(parameters) {
    own_.reserve(parameters.size());
  }
  Lent(Lent const&) = delete;
  Lent& operator=(Lent const&) = delete;
  ~Lent() {
    for (std::size_t i = 0; i < own_.size(); ++i) parameters_[i].set_data(own_[i]);
  }

  /// Separate from the constructor, so that a failure half-way is undone.
  void lend(std::vector<at::Tensor> const& others);

 private:
  std::vector<at::Tensor> const& parameters_;
  std::vector<at::Tensor> own_;
};

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/average/weights.ipp>
#endif
