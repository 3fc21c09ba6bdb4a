// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <atomic>
#include <cstdint>
#include <string>

#include <frugal/base/hash.hpp>
#include <frugal/core/libtorch/tensor_map.hpp>
#include <frugal/data/tensor_identity.hpp>
#include <frugal/inline.hpp>

namespace frugal {

namespace detail {

/// The fixed tensors of the process.
struct FixedTensors {
  struct State {
    bool fixed = false;
    bool trained = false;  ///< it required a gradient before it was fixed
  };
  TensorMap<State> map{};
  std::atomic<bool> any = false;

  FRUGAL_INLINE static FixedTensors& all() {
    static auto* const made = new FixedTensors;  // never destroyed: threads may outlive main()
    return *made;
  }
};

}  // namespace detail

// A fixed tensor is a parameter or buffer of a module that no run changes: frozen for good, or the
// base under adapters. It belongs to the module, in all calls and fits, until unfix_tensor(). Fixed
// tensors are in no checkpoint, snapshot or average, and no optimizer has state for them; a
// checkpoint has their hash, and refuses to be resumed over others.

/// A fixed parameter has no gradient.
FRUGAL_INLINE void fix_tensor(at::Tensor const& tensor) {
  bool const trains = tensor.requires_grad();
  if (trains) tensor.set_requires_grad(false);
  tensor.mutable_grad().reset();
  detail::FixedTensors::all().map.change(tensor, [&](detail::FixedTensors::State& state) {
    state = {.fixed = true, .trained = trains || (state.fixed && state.trained)};
  });
  detail::FixedTensors::all().any = true;
}
namespace detail {

/// The same, at no cost if it is fixed.
FRUGAL_INLINE void keep_fixed(at::Tensor const& tensor) {
  FixedTensors const& all = FixedTensors::all();
  if (!all.any || tensor.requires_grad() || !all.map.find(tensor).fixed) fix_tensor(tensor);
}

}  // namespace detail

/// Runs save the tensor again, until a policy (Freeze, Lora) fixes it once more. Does not make a
/// parameter trained: set requires_grad for that.
FRUGAL_INLINE void unfix_tensor(at::Tensor const& tensor) {
  detail::FixedTensors::all().map.change(tensor, [](auto& state) { state.fixed = false; });
}
FRUGAL_INLINE bool is_fixed(at::Tensor const& tensor) {
  detail::FixedTensors const& all = detail::FixedTensors::all();
  return all.any && all.map.find(tensor).fixed;
}
namespace detail {

/// Undoes fix_tensor(): the tensor is trained again if it was.
FRUGAL_INLINE void restore_fixed(at::Tensor const& tensor) {
  FixedTensors::State const state = FixedTensors::all().map.find(tensor);
  if (!state.fixed) return;
  unfix_tensor(tensor);
  if (state.trained) tensor.set_requires_grad(true);
}

}  // namespace detail

/// The hash of a module's fixed tensors, over names, types, shapes and values, in 16 hexadecimal
/// digits; empty if it has none. Reads all of them.
FRUGAL_INLINE std::string fixed_identity(torch::nn::Module const& module) {
  detail::TensorHash hash;
  bool any = false;
  auto const add = [&](auto const& items) {
    for (auto const& item : items) {
      if (!item.value().defined() || !is_fixed(item.value())) continue;
      any = true;
      hash.add(item.key());
      hash.add(item.value());
    }
  };
  if (!detail::FixedTensors::all().any) return {};
  add(module.named_parameters());
  add(module.named_buffers());
  return any ? hex_of(hash.digest()) : std::string();
}

/// How often the values of a module's fixed tensors have been written to.
FRUGAL_INLINE std::uint64_t fixed_versions(torch::nn::Module const& module) {
  std::uint64_t sum = 0;
  auto const add = [&](at::Tensor const& tensor) {
    if (tensor.defined() && is_fixed(tensor)) sum += static_cast<std::uint64_t>(tensor._version());
  };
  if (!detail::FixedTensors::all().any) return 0;
  for (at::Tensor const& each : module.parameters()) add(each);
  for (at::Tensor const& each : module.buffers()) add(each);
  return sum;
}

}  // namespace frugal
