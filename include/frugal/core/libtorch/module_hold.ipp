// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/module_hold.hpp>

#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <ranges>

namespace frugal::detail {

FRUGAL_INLINE ModuleHold::~ModuleHold() { put_back(); }

FRUGAL_INLINE void ModuleHold::train() {
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

FRUGAL_INLINE void ModuleHold::hold(std::vector<at::Tensor> const& tensors) {
  for (at::Tensor const& each : tensors) {
    held_.try_emplace(each.unsafeGetTensorImpl(), Held{each, each.requires_grad()});
    if (each.requires_grad()) each.set_requires_grad(false);
    each.mutable_grad().reset();
  }
  if (trains_) follow();
}

FRUGAL_INLINE void ModuleHold::let_go(std::vector<at::Tensor> const& tensors) {
  for (at::Tensor const& each : tensors) {
    auto const found = held_.find(each.unsafeGetTensorImpl());
    if (found == held_.end()) continue;
    each.set_requires_grad(found->second.requires_grad);
    held_.erase(found);
  }
  if (trains_) follow();
}

FRUGAL_INLINE void ModuleHold::give_turn(std::size_t part) {
  if (part == turn_) return;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    part == all_parts || i == part ? wake(parts_[i]) : rest(parts_[i]);
  }
  turn_ = part;
}

FRUGAL_INLINE void ModuleHold::rest(std::vector<at::Tensor> const& tensors) {
  for (at::Tensor const& each : tensors) {
    resting_.try_emplace(each.unsafeGetTensorImpl(), Held{each, each.requires_grad()});
    if (each.requires_grad()) each.set_requires_grad(false);
    each.mutable_grad().reset();
  }
}

FRUGAL_INLINE void ModuleHold::wake(std::vector<at::Tensor> const& tensors) {
  for (at::Tensor const& each : tensors) {
    auto const found = resting_.find(each.unsafeGetTensorImpl());
    if (found == resting_.end()) continue;
    each.set_requires_grad(found->second.requires_grad);
    resting_.erase(found);
  }
}

FRUGAL_INLINE void ModuleHold::put_back() noexcept {
  for (auto const& [key, each] : std::exchange(resting_, {})) {
    quietly([&] { each.tensor.set_requires_grad(each.requires_grad); });
  }
  turn_ = all_parts;
  for (auto const& [key, each] : std::exchange(held_, {})) {
    quietly([&] { each.tensor.set_requires_grad(each.requires_grad); });
  }
  quietly([&] { release_layers(); });
  if (modes_) quietly([&] { modes_->restore(); });
  modes_.reset();
  trains_ = false;
}

FRUGAL_INLINE void ModuleHold::follow() {
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

FRUGAL_INLINE void ModuleHold::hold_layers() const {
  for (Layer const& each : layers_) {
    if (each.is_held && each.of.module->is_training()) each.of.module->train(false);
  }
}

FRUGAL_INLINE void ModuleHold::release_layers() {
  for (Layer const& each : layers_) {
    if (each.is_held) each.of.module->train(each.trains);
  }
  layers_.clear();
  holds_layers_ = false;
}

FRUGAL_INLINE Adaptation::Adaptation(torch::nn::Module& module, std::uint64_t seed) : seed_(seed) {
  auto const take = [&](at::Tensor const& tensor) {
    if (!tensor.defined()) return;
    at::Tensor const gradient = tensor.is_leaf() ? tensor.grad() : at::Tensor();
    before_.push_back(
        {tensor, gradient, storage_of(tensor), tensor.requires_grad(), is_fixed(tensor)});
  };
  for (at::Tensor const& each : module.parameters()) take(each);
  for (at::Tensor const& each : module.buffers()) take(each);
}

FRUGAL_INLINE Adaptation::~Adaptation() {
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

FRUGAL_INLINE void Adaptation::train(at::Tensor const& tensor) {
  trained_.insert(tensor.unsafeGetTensorImpl());
  if (is_fixed(tensor)) unfix_tensor(tensor);
  if (!tensor.requires_grad() && tensor.is_floating_point()) tensor.set_requires_grad(true);
}

FRUGAL_INLINE void Adaptation::update(at::Tensor const& tensor) {
  trained_.insert(tensor.unsafeGetTensorImpl());
  unfix_tensor(tensor);
}

}  // namespace frugal::detail
