// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/generators.hpp>

namespace frugal::detail {

/// Passes every parameter and buffer of a module to an archive, by name; the fixed ones included.
template <class Archive>
void visit_all_tensors(torch::nn::Module& module, Archive&& archive) {
  for (auto const& item : module.named_parameters()) {
    if (item.value().defined()) archive(item.key(), item.value());
  }
  // A module may register an undefined buffer, as BatchNorm without statistics does.
  for (auto const& item : module.named_buffers()) {
    if (item.value().defined()) archive(item.key(), item.value());
  }
}

/// Passes every parameter and buffer that a run may change to an archive, by name: all of a module
/// but the fixed ones.
template <class Archive>
void visit_tensors(torch::nn::Module& module, Archive&& archive) {
  visit_all_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
    if (!is_fixed(tensor)) archive(name, tensor);
  });
}

/// Saves or loads the generators' states. The generator of a device that the saved run did not use
/// keeps the seed that `fit` gave it.
template <class Archive>
void persist_generators(Archive& archive, c10::Device device) {
  archive.scope("generators", [&](auto& inner) {
    for (auto& [name, generator] : generators_of(device)) {
      if constexpr (Archive::loading) {
        if (name != "cpu" && !inner.holds(name)) continue;
      }
      at::Tensor state;
      if (!Archive::loading) state = state_of_generator(generator);
      inner(name, state);
      if (Archive::loading) set_state_of_generator(generator, state);
    }
  });
}

/// Copies of a module's buffers on their device: one grouped copy per type and device, into memory
/// that is allocated once.
class BufferCopies {
 public:
  void take(torch::nn::Module& module);
  void restore() const {
    for (Group const& group : groups_) at::_foreach_copy_(group.buffers, group.kept);
  }

 private:
  struct Group {
    std::vector<at::Tensor> buffers;
    std::vector<at::Tensor> kept;
  };

  void look_at(torch::nn::Module& module);

  bool looked_ = false;
  std::vector<Group> groups_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/state/module_tensors.ipp>
#endif
