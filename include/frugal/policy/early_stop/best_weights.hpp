// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>

#include <frugal/core/run/run_snapshot.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/module_tensors.hpp>

namespace frugal {
struct RunState;
}  // namespace frugal

namespace frugal::detail {

/// The weights of the best validation so far, parameters and buffers, in host memory.
class BestWeights {
 public:
  /// Of a run whose processes have parts of the weights.
  [[noreturn]] static void refuse_parts();

  bool empty() const { return empty_; }
  /// The watched metric of that validation.
  double value() const { return value_; }

  /// Copies the module's tensors. A second call reuses the memory.
  void take(RunState& run, double value);

  /// They were the best on other validation data.
  void forget() { empty_ = true; }

  /// Restores them into the module, on its current device; the report names their step.
  void restore(RunState& run);

  /// By the names of parameters and buffers, in a scope that a recipe may lack. Not in a snapshot:
  /// after a Rollback the best validation is still the best. Not moved to another device: the copy
  /// stays in host memory.
  template <class Archive>
  void persist(Archive& archive, torch::nn::Module& module) {
    if (archive.of_a_snapshot) return;
    if constexpr (Archive::loading) {
      if (!archive.has("best_weights")) return;
      empty_ = false;
    } else {
      if (empty_) return;
    }
    archive.scope("best_weights", [&](auto& inner) {
      bool dispensable = true;
      inner("dispensable", dispensable);
      inner("value", value_);
      inner("step", step_);
      inner.scope("tensors", [&](auto& tensors) {
        visit_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
          at::Tensor& kept = kept_.module.tensors[name];
          auto const part = part_of(tensor);
          if (!part) return tensors(name, kept);
          // A part lies in memory as its tensor does.
          at::Tensor own = at::empty_like(tensor.detach(), at::TensorOptions().device(at::kCPU),
                                          at::MemoryFormat::Preserve);
          if (kept.defined()) own.copy_(kept);
          tensors.part(name, own, *part);
          kept = own;
        });
      });
    });
  }

 private:
  RunSnapshot kept_;
  double value_ = 0;
  std::uint64_t step_ = 0;
  bool empty_ = true;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/early_stop/best_weights.ipp>
#endif
