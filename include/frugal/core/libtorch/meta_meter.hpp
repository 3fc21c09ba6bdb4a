// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

namespace frugal::detail {

/// Counts the bytes that tensors of the meta device would take. They take none: a block of theirs
/// is its size alone. Installed for a dry run; blocks may outlive it. Not for several threads.
class MetaMeter final : public c10::Allocator {
 public:
  std::int64_t live() const { return *live_; }
  std::int64_t peak() const { return peak_; }
  void forget_peak() { peak_ = *live_; }

  c10::DataPtr allocate(std::size_t bytes) override {
    auto const size = static_cast<std::int64_t>(bytes);
    *live_ += size;
    peak_ = std::max(peak_, *live_);
    return {nullptr, new Block{live_, size}, &release, c10::Device(c10::kMeta)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void*, void const*, std::size_t) const override {}

  /// Installs a meter for its lifetime.
  class [[nodiscard]] Installed {
   public:
    explicit Installed(MetaMeter& meter) : before_(c10::GetAllocator(c10::kMeta)) {
      c10::SetAllocator(c10::kMeta, &meter);
    }
    Installed(Installed const&) = delete;
    Installed& operator=(Installed const&) = delete;
    ~Installed() { c10::SetAllocator(c10::kMeta, before_); }

   private:
    c10::Allocator* before_;
  };

 private:
  struct Block {
    std::shared_ptr<std::int64_t> live;
    std::int64_t size;
  };
  static void release(void* context);

  std::shared_ptr<std::int64_t> live_ = std::make_shared<std::int64_t>(0);
  std::int64_t peak_ = 0;
};

/// For its lifetime a module's parameters and buffers are on the meta device, without gradients.
/// Its tensors stay what they are for whoever holds them, because a module has its own handles of
/// them, which cannot be found otherwise: they refer to other storage for a while.
class [[nodiscard]] OnMeta {
 public:
  explicit OnMeta(torch::nn::Module& module) {
    std::unordered_set<at::TensorImpl const*> seen;
    auto const add = [&](at::Tensor const& tensor) {
      if (!tensor.defined() || !seen.insert(tensor.unsafeGetTensorImpl()).second) return;
      at::Tensor const meta =
          at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
      kept_.push_back({tensor, tensor.detach(), tensor.is_leaf() ? tensor.grad() : at::Tensor()});
      refer(tensor, meta);
    };
    for (at::Tensor const& tensor : module.parameters()) add(tensor);
    for (at::Tensor const& tensor : module.buffers()) add(tensor);
  }
  OnMeta(OnMeta const&) = delete;
  OnMeta& operator=(OnMeta const&) = delete;
  ~OnMeta() {
    for (Kept const& each : kept_) {
      each.tensor.mutable_grad().reset();
      refer(each.tensor, each.data);
      if (each.gradient.defined()) each.tensor.mutable_grad() = each.gradient;
    }
  }

 private:
  struct Kept {
    at::Tensor tensor, data, gradient;
  };

  // Tensor::set_data does this between devices, but not to or from meta.
  struct Access : c10::TensorImpl {
    static void copy(c10::TensorImpl const* from, c10::TensorImpl* to) {
      copy_tensor_metadata(from, to, to->version_counter(), to->allow_tensor_metadata_change());
    }
  };
  static void refer(at::Tensor const& tensor, at::Tensor const& data);

  std::vector<Kept> kept_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/meta_meter.ipp>
#endif
