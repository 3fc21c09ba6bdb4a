// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/held_evaluation.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

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
