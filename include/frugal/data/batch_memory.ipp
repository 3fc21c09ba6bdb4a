// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/batch_memory.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE bool has_page_locked_memory() {
  auto const device = at::getAccelerator(/*checked=*/false);
  if (!device || !c10::impl::hasDeviceGuardImpl(*device)) return false;
  return c10::impl::getDeviceGuardImpl(*device)->deviceCount() > 0;
}

FRUGAL_INLINE at::Tensor stack_samples(std::vector<at::Tensor> const& samples) {
  if (!page_locked_batches || !samples[0].is_cpu()) return at::stack(samples);
  at::DimVector sizes(samples[0].sizes());
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(samples.size()));
  at::Tensor out = at::empty(sizes, samples[0].options().pinned_memory(true));
  at::stack_out(out, samples);
  return out;
}

FRUGAL_INLINE bool shares_memory(at::Tensor const& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return false;
  return tensor.use_count() > 1 || tensor.storage().use_count() > 1 ||
         tensor.storage().allocator() == nullptr;
}

}  // namespace frugal::detail
