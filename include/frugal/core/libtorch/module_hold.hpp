// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/core/libtorch/statistics_layers.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

// A module has a state besides the values of its tensors: each part's mode, each parameter's
// requires_grad, and which tensors are fixed. Two owners change it: ModuleHold for a fit, until the
// fit ends, and Adaptation for good.

/// The state that a run changes of its module, and puts back at every way out: modes and
/// requires_grad. What others change meanwhile stays.
///
/// A frozen layer keeps its statistics: is_frozen() decides, by what is fixed or held, and not by who
/// has fixed it, so that a layer which Freeze, freeze() or Lora has fixed is held in each fit, and
/// one that is trained again updates them again.
class ModuleHold {
 public:
  explicit ModuleHold(torch::nn::Module& root) : root_(&root) {}
  ModuleHold(ModuleHold const&) = delete;
  ModuleHold& operator=(ModuleHold const&) = delete;
  FRUGAL_INLINE ~ModuleHold() { put_back(); }

  /// Training mode, but for frozen layers. A part in evaluation mode stays there, unless all of the
  /// module is.
  FRUGAL_INLINE void train() {
    if (!root_->is_training()) {
      if (!modes_) modes_.emplace().take(*root_);
      root_->train();
    }
    release_layers();
    for (StatisticsLayer& each : statistics_layers(*root_)) {
      bool const trains = each.module->is_training();
      layers_.push_back({.of = std::move(each), .is_held = false, .trains = trains});
    }
    trains_ = true;
    follow();
  }

  /// Before each forward pass in training: something may have called train().
  void before_pass() const {
    if (holds_layers_) [[unlikely]]
      hold_layers();
  }

  /// These tensors are not trained until let_go(). Of parameters and statistics.
  FRUGAL_INLINE void hold(std::vector<at::Tensor> const& tensors) {
    for (at::Tensor const& each : tensors) {
      held_.try_emplace(each.unsafeGetTensorImpl(), Held{each, each.requires_grad()});
      if (each.requires_grad()) each.set_requires_grad(false);
      each.mutable_grad().reset();
    }
    if (trains_) follow();
  }
  /// They are as they were before hold().
  FRUGAL_INLINE void let_go(std::vector<at::Tensor> const& tensors) {
    for (at::Tensor const& each : tensors) {
      auto const found = held_.find(each.unsafeGetTensorImpl());
      if (found == held_.end()) continue;
      each.set_requires_grad(found->second.requires_grad);
      held_.erase(found);
    }
    if (trains_) follow();
  }

  /// Everything is as it was; nothing the second time.
  FRUGAL_INLINE void put_back() noexcept {
    for (auto const& [key, each] : std::exchange(held_, {})) {
      quietly([&] { each.tensor.set_requires_grad(each.requires_grad); });
    }
    quietly([&] { release_layers(); });
    if (modes_) quietly([&] { modes_->restore(); });
    modes_.reset();
    trains_ = false;
  }

 private:
  struct Held {
    at::Tensor tensor{};
    bool requires_grad = false;
  };
  struct Layer {
    StatisticsLayer of{};
    bool is_held = false;
    bool trains = false;  ///< its mode in training, when it is not held
  };

  /// Holds the frozen layers, and those alone.
  FRUGAL_INLINE void follow() {
    holds_layers_ = false;
    for (Layer& each : layers_) {
      bool const frozen = is_frozen(each.of, [&](at::Tensor const& tensor) {
        return is_fixed(tensor) || held_.contains(tensor.unsafeGetTensorImpl());
      });
      holds_layers_ = holds_layers_ || frozen;
      if (frozen == each.is_held) continue;
      each.is_held = frozen;
      each.of.module->train(!frozen && each.trains);
    }
  }
  FRUGAL_INLINE void hold_layers() const {
    for (Layer const& each : layers_) {
      if (each.is_held && each.of.module->is_training()) each.of.module->train(false);
    }
  }
  FRUGAL_INLINE void release_layers() {
    for (Layer const& each : layers_) {
      if (each.is_held) each.of.module->train(each.trains);
    }
    layers_.clear();
    holds_layers_ = false;
  }

  torch::nn::Module* root_;
  std::optional<Modes> modes_{};  ///< if the whole module has changed its mode
  std::vector<Layer> layers_{};
  std::unordered_map<at::TensorImpl const*, Held> held_{};
  bool trains_ = false;
  bool holds_layers_ = false;
};

/// What the policies of a recipe do to a module's tensors for good, as one act: if one of them throws,
/// nothing of it stays, but for weights that are packed in 4 bits. A tensor that one of them trains is not fixed by the next.
class Adaptation {
 public:
  /// `seed`: of the trainer's runs, for what draws initial values.
  FRUGAL_INLINE explicit Adaptation(torch::nn::Module& module, std::uint64_t seed = 0)
      : seed_(seed) {
    auto const take = [&](at::Tensor const& tensor) {
      if (!tensor.defined()) return;
      at::Tensor const gradient = tensor.is_leaf() ? tensor.grad() : at::Tensor();
      before_.push_back(
          {tensor, gradient, storage_of(tensor), tensor.requires_grad(), is_fixed(tensor)});
    };
    for (at::Tensor const& each : module.parameters()) take(each);
    for (at::Tensor const& each : module.buffers()) take(each);
  }
  Adaptation(Adaptation const&) = delete;
  Adaptation& operator=(Adaptation const&) = delete;
  FRUGAL_INLINE ~Adaptation() {
    for (auto const& undo : undos_ | std::views::reverse) quietly([&] { undo(); });
    for (Before const& each : before_) {
      // What has other numbers now is another tensor: a weight that was packed trains no more.
      if (storage_of(each.tensor) != each.storage) continue;
      quietly([&] {
        if (is_fixed(each.tensor) != each.fixed) {
          each.fixed ? fix_tensor(each.tensor) : unfix_tensor(each.tensor);
        }
        if (each.tensor.requires_grad() != each.requires_grad) {
          each.tensor.set_requires_grad(each.requires_grad);
        }
        if (each.gradient.defined()) each.tensor.mutable_grad() = each.gradient;
      });
    }
  }
  /// All have succeeded.
  void keep() {
    before_.clear();
    undos_.clear();
  }
  /// Also undoes what is not a state of tensors, such as a new child, unless all succeed.
  void otherwise(std::function<void()> undo) { undos_.push_back(std::move(undo)); }

  /// Trained and saved with runs, whatever it was.
  FRUGAL_INLINE void train(at::Tensor const& tensor) {
    trained_.insert(tensor.unsafeGetTensorImpl());
    if (is_fixed(tensor)) unfix_tensor(tensor);
    if (!tensor.requires_grad() && tensor.is_floating_point()) tensor.set_requires_grad(true);
  }
  /// The same of statistics, which have no gradient.
  FRUGAL_INLINE void update(at::Tensor const& tensor) {
    trained_.insert(tensor.unsafeGetTensorImpl());
    unfix_tensor(tensor);
  }
  std::uint64_t seed() const { return seed_; }
  bool trains(at::Tensor const& tensor) const {
    return trained_.contains(tensor.unsafeGetTensorImpl());
  }

 private:
  static void const* storage_of(at::Tensor const& tensor) {
    return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
  }
  struct Before {
    at::Tensor tensor{};
    at::Tensor gradient{};
    void const* storage = nullptr;
    bool requires_grad = false;
    bool fixed = false;
  };
  std::vector<Before> before_{};
  std::vector<std::function<void()>> undos_{};
  std::unordered_set<at::TensorImpl const*> trained_{};
  std::uint64_t seed_ = 0;
};

}  // namespace frugal::detail
