// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/scalar_accumulator.hpp>

#include <frugal/core/run/log_keys.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void ScalarAccumulator::add(Scalars const& scalars, double weight) {
  for (Scalars::Value const& each : scalars) {
    std::size_t const name = index_of(each.name);
    if (!each.is_number) require_one(each);
    if (spans_.empty()) continue;
    // A value of weight 0 is not read: it is often a mean over nothing.
    bool const counts = weight != 0;
    Pending entry{name, weight, counts ? each.number : 0.0, {}};
    if (counts && !each.is_number) {
      if (each.tensor.is_cpu()) {
        entry.value = each.tensor.item<double>();
      } else {
        entry.tensor = each.tensor;
      }
    }
    pending_.push_back(std::move(entry));
    ++added_;
  }
  if (!marked_ && pending_.size() >= a_chunk) shorten();
}

FRUGAL_INLINE void ScalarAccumulator::read_pending() {
  if (pending_.empty()) return;
  std::vector<at::Tensor> on_device;
  for (Pending const& each : pending_) {
    if (each.tensor.defined()) on_device.push_back(each.tensor);
  }
  std::vector<double> const read = values_of(on_device);
  std::size_t next = 0;
  for (Pending const& each : pending_) {
    double const value = each.tensor.defined() ? read[next++] : each.value;
    // A mean over several: it has weight 0 where they had.
    enter(each, each.is_sum ? value : value * each.weight);
  }
  pending_.clear();
}

FRUGAL_INLINE ScalarAccumulator::Mark ScalarAccumulator::mark() {
  marked_ = true;
  if (pending_.size() >= a_chunk) shorten();
  return added_;
}

FRUGAL_INLINE void ScalarAccumulator::go_back(Mark mark) {
  for (; added_ > mark && !pending_.empty(); --added_) pending_.pop_back();
  added_ = mark;
}

FRUGAL_INLINE std::size_t ScalarAccumulator::index_of(std::string const& name) {
  auto const found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
  require_free(name);
  names_.push_back(name);
  return names_.size() - 1;
}

FRUGAL_INLINE void ScalarAccumulator::shorten() {
  std::vector<Pending> all;
  all.swap(pending_);
  for (std::size_t name = 0; name < names_.size(); ++name) {
    Pending sum{name, 0, 0, {}, true};
    for (Pending const& each : all) {
      if (each.name != name) continue;
      if (!each.tensor.defined()) {
        enter(each, each.value * each.weight);
        continue;
      }
      at::Tensor const value = each.tensor.to(at::kDouble).reshape({});
      at::Tensor const part = each.is_sum ? value : value * each.weight;
      sum.tensor = sum.tensor.defined() ? sum.tensor + part.to(sum.tensor.device()) : part;
      sum.weight += each.weight;
    }
    if (sum.tensor.defined()) pending_.push_back(std::move(sum));
  }
}

FRUGAL_INLINE std::vector<double> ScalarAccumulator::values_of(
    std::vector<at::Tensor> const& tensors) {
  std::vector<double> values;
  values.reserve(tensors.size());
  for (std::size_t first = 0; first < tensors.size();) {
    // Scalars of one device are read together; a run may have moved meanwhile.
    std::vector<at::Tensor> together;
    at::Device const device = tensors[first].device();
    for (; first < tensors.size() && tensors[first].device() == device; ++first) {
      together.push_back(tensors[first].reshape({}).to(at::kDouble));
    }
    at::Tensor const host = at::stack(together).cpu();
    auto const* const value = static_cast<double const*>(host.const_data_ptr());
    values.insert(values.end(), value, value + host.numel());
  }
  return values;
}

FRUGAL_INLINE void ScalarAccumulator::require_one(Scalars::Value const& each) {
  if (each.tensor.defined() && each.tensor.numel() == 1 && !each.tensor.is_complex()) return;
  throw ShapeError({.what = "the scalar '" + each.name + "' is not a single number but " +
                            detail::shape_text(each.tensor),
                    .where = "Loss::scalars",
                    .why = "a scalar that is logged with a loss has shape []",
                    .fix = "Take its mean() or sum() in the objective."});
}

FRUGAL_INLINE void ScalarAccumulator::require_free(std::string const& name) {
  detail::require_log_name("a scalar", name, "Loss::scalars");
}

}  // namespace frugal
