// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <utility>
#include <vector>

#include <frugal/data/batch.hpp>
#include <frugal/data/each_tensor.hpp>
#include <frugal/inline.hpp>

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
FRUGAL_INLINE bool has_page_locked_memory() {
  auto const device = at::getAccelerator(/*checked=*/false);
  if (!device || !c10::impl::hasDeviceGuardImpl(*device)) return false;
  return c10::impl::getDeviceGuardImpl(*device)->deviceCount() > 0;
}

/// Tensors of one shape, [...] each, as one [B, ...].
FRUGAL_INLINE at::Tensor stack_samples(std::vector<at::Tensor> const& samples) {
  if (!page_locked_batches || !samples[0].is_cpu()) return at::stack(samples);
  at::DimVector sizes(samples[0].sizes());
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(samples.size()));
  at::Tensor out = at::empty(sizes, samples[0].options().pinned_memory(true));
  at::stack_out(out, samples);
  return out;
}

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
