// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/scalars.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void Scalars::add(Value value) {
  if (!values_) values_ = std::make_unique<std::vector<Value>>();
  values_->push_back(std::move(value));
}

FRUGAL_INLINE Scalars Scalars::clone() const {
  Scalars copy(*this);
  if (!copy.values_) return copy;
  for (Value& each : *copy.values_) {
    if (each.tensor.defined()) each.tensor = each.tensor.clone();
  }
  return copy;
}

}  // namespace frugal
