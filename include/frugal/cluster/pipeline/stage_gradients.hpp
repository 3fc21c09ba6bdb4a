// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/agreement/window_message.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/tensors/exact_sum.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>
#include <frugal/core/libtorch/parameters.hpp>

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
  void begin_fit(std::vector<std::vector<int>> const& stages, std::vector<std::string> names);
  void begin_window(Parameters const& parameters);

  /// A backward pass through a stage has ended, or its micro-batch has none. The gradients are still to be
  /// multiplied by `unit`: that depends on the loss, so each pass begins without any.
  void keep(int stage, double unit);

  /// The window's last pass has ended, or this copy has no micro-batch in it: begins to exchange the sums.
  void finish_passes(Parameters const& parameters);

  /// After finish_passes(): whether parameter i has got a gradient in this process.
  bool has(std::size_t i) const { return sums_[i].defined(); }

  /// Makes the parameters' gradients those of all copies.
  void join();

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
  void require_none_left() const;
  void sum_copies(Stage& stage);

  std::shared_ptr<Communicator> copies_;
  std::vector<Stage> stages_;
  std::vector<std::string> names_;
  bool open_ = false;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> sums_;  ///< by parameter
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/pipeline/stage_gradients.ipp>
#endif
