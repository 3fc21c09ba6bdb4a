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

FRUGAL_INLINE void ScalarSpan::add(std::string const& name, double sum, double weight) {
  auto found =
      std::find_if(sums_.begin(), sums_.end(), [&](Sum const& each) { return each.name == name; });
  if (found == sums_.end()) found = sums_.insert(found, Sum{name});
  found->sum += sum;
  found->weight += weight;
}

FRUGAL_INLINE std::vector<ScalarSpan::Mean> ScalarSpan::take() {
  std::vector<Mean> means;
  for (Sum const& each : sums_) means.emplace_back(each.name, each.sum / each.weight);
  sums_.clear();
  return means;
}

}  // namespace frugal
