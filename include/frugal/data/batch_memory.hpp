// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, ... whatever one sample has.
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/each_tensor.hpp>

#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <type_traits>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Whether collate functions of this thread should put batches into page-locked memory.
inline thread_local bool page_locked_batches = false;

/// Has them do so while it lives.
class [[nodiscard]] PageLockedBatches {
 public:
  explicit PageLockedBatches(bool on) : before_(std::exchange(page_locked_batches, on)) {}
  PageLockedBatches(PageLockedBatches const&) = delete;
  PageLockedBatches& operator=(PageLockedBatches const&) = delete;
  ~PageLockedBatches() { page_locked_batches = before_; }

 private:
  bool before_;
};

/// Whether there is a device that copies from page-locked memory. LibTorch keeps such memory in a
/// pool, and uses it again once the copies from it are done.
bool has_page_locked_memory();

/// Tensors of one shape, [...] each, as one [B, ...].
at::Tensor stack_samples(std::vector<at::Tensor> const& samples);

/// Moves what does not lie in page-locked memory yet there; a batch whose tensors are not known
/// stays where it is.
template <class B>
void lock_pages(B& batch) {
  if constexpr (ShowsTensors<B>) {
    batch_tensors(batch, [](at::Tensor& tensor) {
      if (tensor.defined() && tensor.is_cpu() && !tensor.is_pinned()) tensor = tensor.pin_memory();
    });
  }
}

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
#include <frugal/data/batch_memory.ipp>
#endif
