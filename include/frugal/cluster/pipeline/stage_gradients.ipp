// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/pipeline/stage_gradients.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <ATen/core/grad_mode.h>

#include <cstdint>

namespace frugal::detail {

FRUGAL_INLINE void StageGradients::begin_fit(std::vector<std::vector<int>> const& stages,
                                             std::vector<std::string> names) {
  stages_.clear();
  open_ = false;
  names_ = std::move(names);
  if (!copies_) return;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (int const stage : stages[i]) of(stage).indices.push_back(i);
  }
}

FRUGAL_INLINE void StageGradients::begin_window(Parameters const& parameters) {
  open_ = true;
  parameters_ = parameters.tensors;
  sums_.assign(parameters_.size(), at::Tensor());
  for (Stage& each : stages_) {
    std::vector<at::Tensor> own;
    for (std::size_t const i : each.indices) own.push_back(parameters_[i]);
    each.gradients->begin(own);
  }
}

FRUGAL_INLINE void StageGradients::keep(int stage, double unit) {
  at::NoGradGuard const no_gradients;
  if (copies_) {
    if (Stage* const one = find(stage)) one->gradients->take(unit, "Pipeline");
    require_none_left();
    return;
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& gradient = parameters_[i].mutable_grad();
    if (!gradient.defined()) continue;
    require_dense(gradient, "Pipeline");
    at::Tensor const one = std::exchange(gradient, at::Tensor());
    if (sums_[i].defined()) {
      sums_[i].add_(one, unit);
    } else {
      sums_[i] = unit == 1 ? one : one * unit;  // autograd may share its memory
    }
  }
}

FRUGAL_INLINE void StageGradients::finish_passes(Parameters const& parameters) {
  if (!open_) begin_window(parameters);
  for (Stage& each : stages_) {
    each.gradients->begin_rest();
    std::vector<at::Tensor> const& own = each.gradients->own();
    for (std::size_t k = 0; k < own.size(); ++k) {
      if (each.gradients->has()[k]) sums_[each.indices[k]] = own[k];
    }
  }
}

FRUGAL_INLINE void StageGradients::join() {
  if (copies_ && copies_->size() > 1) {
    for (Stage& each : stages_) sum_copies(each);
  }
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    if (sums_[i].defined()) parameters_[i].mutable_grad() = std::move(sums_[i]);
  }
  open_ = false;
}

FRUGAL_INLINE void StageGradients::require_none_left() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad().defined()) [[likely]]
      continue;
    throw ModuleError(
        {.what = "a layer in the middle uses '" + names_[i] + "', which is outside of the list",
         .where = "Pipeline<..., Exact>",
         .why = "its gradients are added up in the order of the first and the last stage",
         .fix = "Give each layer a module of its own for it, or leave Exact out: one copy."});
  }
}

FRUGAL_INLINE void StageGradients::sum_copies(Stage& stage) {
  std::vector<bool> has = stage.gradients->has();
  WindowMessage const message(0, has.size());
  at::Tensor const rows =
      copies_->gather(message.pack({}, has, false, false), "which parameters have gradients");
  std::vector<bool> counts;
  for (std::int64_t copy = 0; copy < copies_->size(); ++copy) {
    WindowMessage::Part const part = message.unpack(rows[copy]);
    counts.push_back(part.counts());
    for (std::size_t k = 0; k < has.size(); ++k) has[k] = has[k] || part.has_gradient[k];
  }
  // Empty if no copy has a micro-batch that counts.
  std::vector<at::Tensor> const all = stage.gradients->sum(counts);
  for (std::size_t k = 0; k < has.size(); ++k) {
    if (has[k]) sums_[stage.indices[k]] = all[k];
  }
}

}  // namespace frugal::detail
