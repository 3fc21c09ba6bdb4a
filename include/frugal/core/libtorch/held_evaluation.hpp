// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstddef>
#include <map>
#include <mutex>

#include <frugal/core/libtorch/modes.hpp>

namespace frugal::detail {

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
#include <frugal/core/libtorch/held_evaluation.ipp>
#endif
