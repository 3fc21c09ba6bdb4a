// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/recompute/frame.hpp>

#include <frugal/core/source/batch.hpp>
#include <frugal/inline.hpp>

#include <exception>

namespace frugal::detail {

FRUGAL_INLINE std::int64_t Frame::version_of(at::Tensor const& tensor) {
  if (!tensor.requires_grad()) return -1;
  bool const leaf = tensor.is_leaf() || (tensor.is_view() && tensor._base().is_leaf());
  return leaf ? tensor._version() : -1;
}

FRUGAL_INLINE std::shared_ptr<Slot> Frame::new_slot(at::Tensor const& tensor) {
  auto slot = std::make_shared<Slot>(Slot{
      .sizes = tensor.sizes().vec(), .type = tensor.scalar_type(), .version = version_of(tensor)});
  slots_.push_back(slot);
  return slot;
}

FRUGAL_INLINE at::Tensor Frame::value_of(Slot& slot) {
  // Two threads of a backward pass may get here at once. The holder may re-enter, from a backward
  // pass inside the function.
  std::scoped_lock const lock(mutex_);
  if (!slot.value.defined()) recompute();
  if (!slot.value.defined()) refuse("the second call saved fewer tensors than the first");
  return slot.value;
}

FRUGAL_INLINE void Frame::recompute() {
  Capturing how(*this);
  Inside const inside;
  SavedTensorsScope const scope(&how);
  at::AutoGradMode const gradients(true);
  try {
    call_again();
  } catch (Enough const&) {  // everything that backward needs is there
  } catch (std::exception const&) {
    throw;
  } catch (...) {
    // LibTorch's threads forward no other exceptions to the caller of backward.
    throw ModuleError({.what = "a recomputed function threw a value that is not a std::exception",
                       .where = "recompute, in backward",
                       .why = "",
                       .fix = "Throw types that derive from std::exception."});
  }
}

FRUGAL_INLINE void Frame::fill(std::size_t at, at::Tensor const& tensor) {
  if (at >= slots_.size()) return;
  // A slot whose operator has finished its backward has expired.
  if (auto const slot = slots_[at].lock()) {
    if (slot->sizes != tensor.sizes() || slot->type != tensor.scalar_type()) {
      refuse("its tensor " + std::to_string(at) + " is now " + shape_text(tensor));
    }
    if (slot->version != version_of(tensor)) {
      refuse("a parameter " + shape_text(tensor) + " was changed in between");
    }
    slot->value = tensor.detach();
  }
  if (at + 1 == slots_.size()) throw Enough{};
}

FRUGAL_INLINE void Frame::refuse(std::string why) {
  throw ModuleError({.what = "a recomputed function did not do what it did the first time",
                     .where = "recompute, in backward",
                     .why = std::move(why),
                     .fix = "Make it depend on its inputs, on parameters and on LibTorch's "
                            "generators only, and change weights only after backward."});
}

}  // namespace frugal::detail
