// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstddef>
#include <memory>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// The training flag of each submodule: a frozen BatchNorm stays frozen.
class Modes {
 public:
  FRUGAL_INLINE void take(torch::nn::Module& module) {
    module_ = &module;
    training_ = module.is_training();
    parts_.clear();
    parts_training_.clear();
    bool alike = true;
    module.apply(
        [&](torch::nn::Module& part) { alike = alike && part.is_training() == training_; });
    if (alike) return;  // then a single flag is enough
    parts_ = module.modules(/*include_self=*/false);
    for (auto const& part : parts_) parts_training_.push_back(part->is_training());
  }

  FRUGAL_INLINE void restore() const {
    // train() recurses, and modules() lists parents before children: each ends in its own mode.
    module_->train(training_);
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i]->train(parts_training_[i]);
  }

 private:
  torch::nn::Module* module_ = nullptr;
  bool training_ = false;
  std::vector<std::shared_ptr<torch::nn::Module>> parts_;
  std::vector<bool> parts_training_;
};

/// Restores every submodule's mode at the end of a scope.
class [[nodiscard]] KeepModes {
 public:
  explicit KeepModes(torch::nn::Module& module) { modes_.take(module); }
  KeepModes(KeepModes const&) = delete;
  KeepModes& operator=(KeepModes const&) = delete;
  ~KeepModes() { modes_.restore(); }  // sets flags; copies nothing

 private:
  Modes modes_;
};

/// Restores every mode like KeepModes, and switches to evaluation mode for the scope.
class [[nodiscard]] EvaluationMode : KeepModes {
 public:
  explicit EvaluationMode(torch::nn::Module& module) : KeepModes(module) { module.eval(); }
};

}  // namespace frugal::detail
