// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace frugal::detail {

/// The training flag of each submodule: a frozen BatchNorm stays frozen.
class Modes {
 public:
  void take(torch::nn::Module& module);

  void restore() const;

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

/// Evaluation mode for a scope, of a module that several threads may ask at once: the modes that the first one
/// finds are those that the last one restores, so that no thread ends the evaluation of another.
class [[nodiscard]] HeldEvaluation {
 public:
  explicit HeldEvaluation(torch::nn::Module& module);
  HeldEvaluation(HeldEvaluation const&) = delete;
  HeldEvaluation& operator=(HeldEvaluation const&) = delete;
  ~HeldEvaluation();

 private:
  struct Held {
    Modes modes{};
    std::size_t holders = 0;
  };
  struct Registry {
    std::mutex guard;
    std::map<torch::nn::Module const*, Held> of;
  };
  static Registry& held() {
    static Registry all;
    return all;
  }

  torch::nn::Module& module_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/modes.ipp>
#endif
