// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstddef>
#include <map>
#include <mutex>

#include <frugal/core/libtorch/modes.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// Evaluation mode for a scope, of a module that several threads may ask at once: the modes that the first one
/// finds are those that the last one restores, so that no thread ends the evaluation of another.
class [[nodiscard]] HeldEvaluation {
 public:
  FRUGAL_INLINE explicit HeldEvaluation(torch::nn::Module& module) : module_(module) {
    std::scoped_lock const lock(held().guard);
    auto const [found, is_first] = held().of.try_emplace(&module);
    if (is_first) found->second.modes.take(module);
    ++found->second.holders;
    // A thread that trains nothing writes nothing that others read.
    bool trains = false;
    module.apply([&](torch::nn::Module& part) { trains = trains || part.is_training(); });
    if (trains) module.eval();
  }
  HeldEvaluation(HeldEvaluation const&) = delete;
  HeldEvaluation& operator=(HeldEvaluation const&) = delete;
  FRUGAL_INLINE ~HeldEvaluation() {
    std::scoped_lock const lock(held().guard);
    auto const found = held().of.find(&module_);
    if (--found->second.holders != 0) return;
    found->second.modes.restore();
    held().of.erase(found);
  }

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
