// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <c10/core/Allocator.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
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

/// For its lifetime, operators that LibTorch cannot run on meta tensors run on zeros of the same
/// shapes on the CPU, one operator at a time, and their results become meta tensors again. In C++
/// LibTorch has meta kernels of few operators: relu, embedding and convolution are Python's.
///
/// Operators whose result depends on values throw ModuleError, except for `equal`, which is true
/// for a tensor and itself. After torch._subclasses.fake_tensor.run_fallback_kernel.
class [[nodiscard]] MetaFallback {
 public:
  MetaFallback()
      : library_(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__) {
    // LibTorch has a fallback for the device already, which throws.
    auto& dispatcher = c10::Dispatcher::singleton();
    for (c10::OperatorName const& name :
         dispatcher.getRegistrationsForDispatchKey(c10::DispatchKey::CPU)) {
      auto const space = name.getNamespace();
      if (!space || *space != "aten") continue;
      auto const op = dispatcher.findOp(name);
      if (!op || op->hasKernelForDispatchKey(c10::DispatchKey::Meta) || is_composite(*op)) continue;
      add(name.overload_name.empty() ? name.name : name.name + "." + name.overload_name);
    }
    // On an unknown device these ask for a backend's own kernel.
    add("aten::convolution");
    add("aten::convolution_backward");
  }
  MetaFallback(MetaFallback const&) = delete;
  MetaFallback& operator=(MetaFallback const&) = delete;
  ~MetaFallback() = default;

 private:
  void add(std::string const& name) {
    library_.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&run>());
  }
  static bool is_composite(c10::OperatorHandle const& op);

  /// The arguments that are tensors, on the meta device and on the CPU.
  class Stands {
   public:
    c10::IValue on_host(c10::IValue const& value);

    c10::IValue on_meta(c10::IValue const& value) const;

   private:
    at::Tensor on_host(at::Tensor const& tensor);
    at::Tensor on_meta(at::Tensor const& tensor) const;

    std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
  };

  static void run(c10::OperatorHandle const& op, torch::jit::Stack* stack);

  torch::Library library_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/meta_meter.ipp>
#endif
