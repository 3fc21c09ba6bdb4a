// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/fixed_tensors.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE FixedTensors& FixedTensors::all() {
  static auto* const made = new FixedTensors;  // never destroyed: threads may outlive main()
  return *made;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void fix_tensor(at::Tensor const& tensor) {
  bool const trains = tensor.requires_grad();
  if (trains) tensor.set_requires_grad(false);
  tensor.mutable_grad().reset();
  detail::FixedTensors::all().map.change(tensor, [&](detail::FixedTensors::State& state) {
    state = {.fixed = true, .trained = trains || (state.fixed && state.trained)};
  });
  detail::FixedTensors::all().any = true;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void keep_fixed(at::Tensor const& tensor) {
  FixedTensors const& all = FixedTensors::all();
  if (!all.any || tensor.requires_grad() || !all.map.find(tensor).fixed) fix_tensor(tensor);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void unfix_tensor(at::Tensor const& tensor) {
  detail::FixedTensors::all().map.change(tensor, [](auto& state) { state.fixed = false; });
}

FRUGAL_INLINE bool is_fixed(at::Tensor const& tensor) {
  detail::FixedTensors const& all = detail::FixedTensors::all();
  return all.any && all.map.find(tensor).fixed;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void restore_fixed(at::Tensor const& tensor) {
  FixedTensors::State const state = FixedTensors::all().map.find(tensor);
  if (!state.fixed) return;
  unfix_tensor(tensor);
  if (state.trained) tensor.set_requires_grad(true);
}

}  // namespace frugal::detail

namespace frugal {

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
