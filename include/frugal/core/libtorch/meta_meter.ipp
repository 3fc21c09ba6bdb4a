// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/meta_meter.hpp>

#include <frugal/inline.hpp>

#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void MetaMeter::release(void* context) {
  std::unique_ptr<Block> const block(static_cast<Block*>(context));
  if (block) *block->live -= block->size;
}

FRUGAL_INLINE void OnMeta::refer(at::Tensor const& tensor, at::Tensor const& data) {
  if (tensor.is_leaf()) tensor.mutable_grad().reset();
  Access::copy(data.unsafeGetTensorImpl(), tensor.unsafeGetTensorImpl());
  // It knows the device of the gradients that it adds up.
  if (auto* const meta = torch::autograd::impl::get_autograd_meta(tensor)) {
    meta->grad_accumulator_.reset();
  }
}

}  // namespace frugal::detail
