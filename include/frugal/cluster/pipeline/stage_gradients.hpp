// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/agreement/window_message.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/tensors/exact_sum.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// The gradients of a window in one process of a pipeline: sums over the micro-batches of its copy of the
/// module, and then over the copies, of the losses times their weights.
///
/// Without `copies` each backward pass is added to those before it. With them the sums are nodes of one
/// tree over the window's micro-batches, as those of Replicate<Exact>: the number of copies changes no bit.
class StageGradients {
 public:
  explicit StageGradients(std::shared_ptr<Communicator> copies) : copies_(std::move(copies)) {}

  /// A fit begins. `stages`: of each parameter, the own stages whose backward passes may give it a
  /// gradient. `names`: of the parameters.
  void begin_fit(std::vector<std::vector<int>> const& stages, std::vector<std::string> names) {
    stages_.clear();
    open_ = false;
    names_ = std::move(names);
    if (!copies_) return;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      for (int const stage : stages[i]) of(stage).indices.push_back(i);
    }
  }

  void begin_window(Parameters const& parameters) {
    open_ = true;
    parameters_ = parameters.tensors;
    sums_.assign(parameters_.size(), at::Tensor());
    for (Stage& each : stages_) {
      std::vector<at::Tensor> own;
      for (std::size_t const i : each.indices) own.push_back(parameters_[i]);
      each.gradients->begin(own);
    }
  }

  /// A backward pass through a stage has ended, or its micro-batch has none. The gradients are still to be
  /// multiplied by `unit`: that depends on the loss, so each pass begins without any.
  void keep(int stage, double unit) {
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

  /// The window's last pass has ended, or this copy has no micro-batch in it: begins to exchange the sums.
  void finish_passes(Parameters const& parameters) {
    if (!open_) begin_window(parameters);
    for (Stage& each : stages_) {
      each.gradients->begin_rest();
      std::vector<at::Tensor> const& own = each.gradients->own();
      for (std::size_t k = 0; k < own.size(); ++k) {
        if (each.gradients->has()[k]) sums_[each.indices[k]] = own[k];
      }
    }
  }

  /// After finish_passes(): whether parameter i has got a gradient in this process.
  bool has(std::size_t i) const { return sums_[i].defined(); }

  /// Makes the parameters' gradients those of all copies.
  void join() {
    if (copies_ && copies_->size() > 1) {
      for (Stage& each : stages_) sum_copies(each);
    }
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (sums_[i].defined()) parameters_[i].mutable_grad() = std::move(sums_[i]);
    }
    open_ = false;
  }

 private:
  /// An own stage, of a pipeline with copies.
  struct Stage {
    int stage = 0;
    std::vector<std::size_t> indices{};  ///< of parameters
    std::unique_ptr<ExactGradients> gradients{};
  };

  Stage* find(int stage) {
    auto const place = std::ranges::find(stages_, stage, &Stage::stage);
    return place == stages_.end() ? nullptr : &*place;
  }
  Stage& of(int stage) {
    if (Stage* const one = find(stage)) return *one;
    Stage& one = stages_.emplace_back();
    one.stage = stage;
    one.gradients = std::make_unique<ExactGradients>(*copies_);
    return one;
  }

  /// A parameter outside of the list of layers has a place in the trees of both ends.
  void require_none_left() const {
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

  void sum_copies(Stage& stage) {
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

  std::shared_ptr<Communicator> copies_;
  std::vector<Stage> stages_;
  std::vector<std::string> names_;
  bool open_ = false;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> sums_;  ///< by parameter
};

}  // namespace frugal::detail
