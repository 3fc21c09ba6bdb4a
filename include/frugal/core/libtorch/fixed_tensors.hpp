// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <atomic>
#include <cstdint>
#include <string>

#include <frugal/core/libtorch/tensor_map.hpp>

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

  static FixedTensors& all();
};

}  // namespace detail

// A fixed tensor is a parameter or buffer of a module that no run changes: frozen for good, or the
// base under adapters. It belongs to the module, in all calls and fits, until unfix_tensor(). Fixed
// tensors are in no checkpoint, snapshot or average, and no optimizer has state for them; a
// checkpoint has their hash, and refuses to be resumed over others.

/// A fixed parameter has no gradient.
void fix_tensor(at::Tensor const& tensor);
namespace detail {

/// The same, at no cost if it is fixed.
void keep_fixed(at::Tensor const& tensor);

}  // namespace detail

/// Runs save the tensor again, until a policy (Freeze, Lora) fixes it once more. Does not make a
/// parameter trained: set requires_grad for that.
void unfix_tensor(at::Tensor const& tensor);
bool is_fixed(at::Tensor const& tensor);
namespace detail {

/// Undoes fix_tensor(): the tensor is trained again if it was.
void restore_fixed(at::Tensor const& tensor);

}  // namespace detail

/// The hash of a module's fixed tensors, over names, types, shapes and values, in 16 hexadecimal
/// digits; empty if it has none. Reads all of them.
std::string fixed_identity(torch::nn::Module const& module);

/// How often the values of a module's fixed tensors have been written to.
std::uint64_t fixed_versions(torch::nn::Module const& module);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/fixed_tensors.ipp>
#endif
