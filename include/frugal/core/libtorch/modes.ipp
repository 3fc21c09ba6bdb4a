// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/modes.hpp>

#include <frugal/inline.hpp>

#include <cstddef>

namespace frugal::detail {

FRUGAL_INLINE void Modes::take(torch::nn::Module& module) {
  module_ = &module;
  training_ = module.is_training();
  parts_.clear();
  parts_training_.clear();
  bool alike = true;
  module.apply([&](torch::nn::Module& part) { alike = alike && part.is_training() == training_; });
  if (alike) return;  // then a single flag is enough
  parts_ = module.modules(/*include_self=*/false);
  for (auto const& part : parts_) parts_training_.push_back(part->is_training());
}

FRUGAL_INLINE void Modes::restore() const {
  // train() recurses, and modules() lists parents before children: each ends in its own mode.
  module_->train(training_);
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i]->train(parts_training_[i]);
}

}  // namespace frugal::detail
