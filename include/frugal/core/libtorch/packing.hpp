// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/saved_tensors.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

using Sizes = std::vector<std::int64_t>;

/// A tensor's memory layout: dimensions from the widest stride to the narrowest, contiguous ones
/// merged. Views that differ only in shape are equal.
struct Layout {
  explicit Layout(at::Tensor const& tensor);

  bool same_place(Layout const& other) const {
    return offset == other.offset && lengths == other.lengths && steps == other.steps;
  }

  std::int64_t offset;
  Sizes repeated;  ///< the tensor's sizes
  Sizes once;      ///< the same, with expanded dimensions as 1
  Sizes order;     ///< its dimensions, sorted by stride
  Sizes lengths;   ///< of the dimensions in memory
  Sizes steps;     ///< strides of these dimensions
};

/// Decides which saved tensors are packed, and how. Lives for one forward pass. A format stores the
/// tensor's elements in memory order.
///
/// Packs results of operators that autograd tracks. Never packs parameters, buffers, batches or
/// their views: these stay in memory anyway. Nor statistics that an operator keeps for itself, such
/// as the mean of a LayerNorm: they are small, and its whole result depends on them.
template <class Format>
class Packing final : public SavedTensors {
  using Packed = typename Format::Packed;

 public:
  explicit Packing(Format format = {}) : format_(std::move(format)) {}

  std::unique_ptr<Hooks> hooks() override { return std::make_unique<Kept>(*this); }

 private:
  /// One saved tensor, until backward has used it.
  class Kept final : public Hooks {
   public:
    explicit Kept(Packing& packing) : packing_(&packing) {}

    void call_pack_hook(at::Tensor const& tensor) override {
      Packing& packing = *std::exchange(packing_, nullptr);
      if (worth_it(tensor)) {
        layout_ = std::make_unique<Layout>(tensor);
        packed_ = packing.packed(tensor, *layout_);
        options_ = tensor.options();
      } else {
        // Detached, because the tensor's graph may refer back to the operator that keeps it.
        whole_ = tensor.detach();
        version_ = whole_._version();
      }
    }

    at::Tensor call_unpack_hook() override {
      at::NoGradGuard const no_gradients;
      if (!packed_) {
        if (whole_._version() != version_) refuse();
        return whole_;
      }
      Layout const& layout = *layout_;
      Sizes by_stride;
      Sizes back(layout.order.size());
      for (std::size_t i = 0; i < layout.order.size(); ++i) {
        auto const dimension = static_cast<std::size_t>(layout.order[i]);
        by_stride.push_back(layout.once[dimension]);
        back[dimension] = static_cast<std::int64_t>(i);
      }
      return Format::unpack(packed_, options_)
          .view(by_stride)
          .permute(back)
          .expand(layout.repeated);
    }

   private:
    [[noreturn]] void refuse() const {
      throw ModuleError({.what = "a tensor " + shape_text(whole_) +
                                 " that backward needs was changed "
                                 "in place after it was saved",
                         .where = "Activations, in backward",
                         .why = "",
                         .fix = "Use the out-of-place operator, or begin with a clone()."});
    }

    Packing* packing_;
    std::unique_ptr<Layout> layout_;
    std::shared_ptr<Packed> packed_;
    at::TensorOptions options_;
    at::Tensor whole_;
    std::int64_t version_ = 0;
  };

  static constexpr std::int64_t few = 1024;  ///< tensors with fewer elements are not worth a copy

  static bool worth_it(at::Tensor const& tensor) {
    if (!tensor.requires_grad() || tensor.is_leaf() || tensor.numel() < few ||
        tensor.layout() != at::kStrided || !Format::takes(tensor)) {
      return false;
    }
    if (tensor.is_view()) return !tensor._base().is_leaf();
    return tensor.output_nr() == 0;
  }

  /// The existing copy of these elements, or a new one.
  std::shared_ptr<Packed> packed(at::Tensor const& tensor, Layout const& layout) {
    c10::Storage const& storage = tensor.storage();
    auto const [begin, end] = known_.equal_range(storage.unsafeGetStorageImpl());
    for (auto known = begin; known != end; ++known) {
      Known const& each = known->second;
      if (each.version != tensor._version() || !each.layout.same_place(layout)) continue;
      if (auto found = each.packed.lock()) return found;
    }
    at::Tensor const elements = tensor.as_strided(layout.lengths, layout.steps, layout.offset);
    std::shared_ptr<Packed> made = format_.pack(elements);
    known_.emplace(storage.unsafeGetStorageImpl(),
                   Known{storage.getWeakStorageImpl(), layout, tensor._version(), made});
    return made;
  }

  struct Known {
    // Reserves the address, so that no other storage gets it, without keeping the memory alive.
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    Layout layout;
    std::int64_t version;
    std::weak_ptr<Packed> packed;
  };

  Format format_;
  std::unordered_multimap<c10::StorageImpl const*, Known> known_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/packing.ipp>
#endif
