// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>
#include <utility>

namespace frugal::detail {

/// Decides how tensors that operators save for backward are stored.
class SavedTensors {
 public:
  using Hooks = torch::autograd::SavedVariableHooks;

  SavedTensors() = default;
  SavedTensors(SavedTensors const&) = delete;
  SavedTensors& operator=(SavedTensors const&) = delete;
  virtual ~SavedTensors() = default;

  /// Hooks for one saved tensor, called in the thread that saves it. Null: LibTorch stores it as
  /// usual.
  virtual std::unique_ptr<Hooks> hooks() = 0;
};

/// The handler for operators of this thread; null for none.
inline thread_local SavedTensors* saved_tensors = nullptr;

/// LibTorch asks its engine for saved-tensor hooks, and accepts a custom engine. This one uses
/// `saved_tensors` for the hooks and forwards every pass to LibTorch's engine, whose threads and
/// queues exist once per process, perhaps since before this engine was installed.
class HookingEngine final : public torch::autograd::Engine {
  using Engine = torch::autograd::Engine;
  // A shared_ptr or an intrusive_ptr, depending on LibTorch's version.
  using NodePointer = decltype(torch::autograd::Edge::function);

 public:
  /// Installs it as the process's engine, permanently. Throws SettingsError if another custom
  /// engine is installed.
  static void install();

  torch::autograd::variable_list execute(torch::autograd::edge_list const& roots,
                                         torch::autograd::variable_list const& inputs,
                                         bool keep_graph, bool create_graph, bool accumulate_grad,
                                         torch::autograd::edge_list const& outputs) override {
    return get_base_engine().execute(roots, inputs, keep_graph, create_graph, accumulate_grad,
                                     outputs);
  }

  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      std::shared_ptr<torch::autograd::GraphTask> const& task, NodePointer root,
      torch::autograd::InputBuffer&& inputs) override {
    return get_base_engine().execute_with_graph_task(task, std::move(root), std::move(inputs));
  }

  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return saved_tensors ? saved_tensors->hooks() : nullptr;
  }

 private:
  HookingEngine() = default;

  static HookingEngine& instance() {
    // Never destroyed: threads of the process may still use it.
    static HookingEngine* const engine = new HookingEngine;
    return *engine;
  }

  [[noreturn]] static void refuse();
};

/// For its lifetime, tensors that this thread's operators save go through `how`.
class [[nodiscard]] SavedTensorsScope {
 public:
  explicit SavedTensorsScope(SavedTensors* how) {
    HookingEngine::install();
    before_ = std::exchange(saved_tensors, how);
  }
  SavedTensorsScope(SavedTensorsScope const&) = delete;
  SavedTensorsScope& operator=(SavedTensorsScope const&) = delete;
  ~SavedTensorsScope() { saved_tensors = before_; }

 private:
  SavedTensors* before_ = nullptr;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/saved_tensors.ipp>
#endif
