// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <type_traits>

#include <frugal/core/source/each_tensor.hpp>

namespace frugal::detail {

/// Whether the memory of a tensor is not its own: a set's tensor or a view of it, or memory that
/// LibTorch did not allocate, such as a mapped file, which may be read-only.
bool shares_memory(at::Tensor const& tensor);

/// Copies the tensors of a sample or a batch whose memory is shared: a function that writes into
/// them would change the set for all later epochs, or end the process.
template <class B>
void own_memory(B& batch) {
  if constexpr (ShowsTensors<B>) {
    show_tensors(batch, [](auto& tensor) {
      if constexpr (!std::is_const_v<std::remove_reference_t<decltype(tensor)>>) {
        if (shares_memory(tensor)) tensor = tensor.clone();
      }
    });
  }
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/own_memory.ipp>
#endif
