// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <utility>
#include <vector>

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/each_tensor.hpp>

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

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/page_locked_batches.ipp>
#endif
