// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

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
#include <frugal/core/libtorch/meta_fallback.ipp>
#endif
