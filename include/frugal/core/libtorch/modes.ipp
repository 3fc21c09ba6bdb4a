// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/modes.hpp>

#include <cstddef>

#include <frugal/inline.hpp>

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

FRUGAL_INLINE HeldEvaluation::HeldEvaluation(torch::nn::Module& module) : module_(module) {
  std::scoped_lock const lock(held().guard);
  auto const [found, is_first] = held().of.try_emplace(&module);
  if (is_first) found->second.modes.take(module);
  ++found->second.holders;
  // A thread that trains nothing writes nothing that others read.
  bool trains = false;
  module.apply([&](torch::nn::Module& part) { trains = trains || part.is_training(); });
  if (trains) module.eval();
}

FRUGAL_INLINE HeldEvaluation::~HeldEvaluation() {
  std::scoped_lock const lock(held().guard);
  auto const found = held().of.find(&module_);
  if (--found->second.holders != 0) return;
  found->second.modes.restore();
  held().of.erase(found);
}

}  // namespace frugal::detail
