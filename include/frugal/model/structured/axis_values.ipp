// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/structured/axis_values.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE AxisValues::AxisValues(torch::nn::Module& module) {
  auto const add = [&](at::Tensor const& tensor, bool is_parameter) {
    if (!tensor.defined() || values_.contains(tensor.unsafeGetTensorImpl())) return;
    AxisValue value;
    if (is_parameter) value.parameter = tensor.unsafeGetTensorImpl();
    for (std::int64_t i = 0; i < tensor.dim(); ++i) {
      value.axes.push_back(spaces.axis(tensor.size(i)));
      value.dims.push_back(static_cast<std::size_t>(i));
    }
    keep(tensor, std::move(value));
  };
  for (at::Tensor const& each : module.parameters()) add(each, true);
  for (at::Tensor const& each : module.buffers()) add(each, false);
}

FRUGAL_INLINE std::vector<Axis> AxisValues::axes_of(at::Tensor const& tensor) const {
  std::vector<Axis> all;
  for (Axis const& each : values_.at(tensor.unsafeGetTensorImpl()).axes) {
    all.push_back(spaces.resolved(each));
  }
  return all;
}

FRUGAL_INLINE bool AxisValues::knows(at::Tensor const& tensor) const {
  return values_.contains(tensor.unsafeGetTensorImpl());
}

FRUGAL_INLINE bool AxisValues::knows(std::vector<c10::IValue> const& tensors) const {
  bool all = true;
  each_traced(tensors, [&](at::Tensor const& each) {
    all = all && values_.contains(each.unsafeGetTensorImpl());
  });
  return all;
}

FRUGAL_INLINE void AxisValues::refuse(OperatorCall const& call) {
  std::string const why = "aten::" + call.name + " is not traced";
  each_traced(call.inputs, [&](at::Tensor const& each) { lock_all(each, why); });
  each_traced(call.outputs, [&](at::Tensor const& each) {
    if (!values_.contains(each.unsafeGetTensorImpl())) keep(each, fresh(each, why));
  });
}

FRUGAL_INLINE void AxisValues::keep(at::Tensor const& tensor, AxisValue value) {
  values_.insert_or_assign(tensor.unsafeGetTensorImpl(), std::move(value));
  alive_.push_back(tensor);
}

FRUGAL_INLINE AxisValue AxisValues::fresh(at::Tensor const& tensor, std::string const& why) {
  AxisValue value;
  for (std::int64_t const size : tensor.sizes()) {
    value.axes.push_back(spaces.locked_axis(size, why));
  }
  return value;
}

FRUGAL_INLINE AxisValue& AxisValues::of(at::Tensor const& tensor) {
  auto const found = values_.find(tensor.unsafeGetTensorImpl());
  if (found != values_.end()) return found->second;
  keep(tensor, fresh(tensor, "a tensor from outside has it"));
  return values_.at(tensor.unsafeGetTensorImpl());
}

FRUGAL_INLINE void AxisValues::lock_all(at::Tensor const& tensor, std::string const& why) {
  if (!tensor.defined()) return;
  for (Axis const& each : of(tensor).axes) spaces.lock(each, why);
}

FRUGAL_INLINE void AxisValues::give(at::Tensor const& tensor, std::vector<Axis> axes) {
  if (tensor.defined()) keep(tensor, {.axes = std::move(axes)});
}

FRUGAL_INLINE std::vector<Axis> AxisValues::broadcast(std::vector<at::Tensor> const& tensors,
                                                      at::IntArrayRef shape,
                                                      std::string const& why) {
  std::vector<Axis> all(shape.size());
  for (at::Tensor const& tensor : tensors) {
    std::vector<Axis> const axes = of(tensor).axes;
    for (std::size_t i = 0; i < axes.size() && i < shape.size(); ++i) {
      Axis const& axis = axes[axes.size() - 1 - i];
      Axis& to = all[shape.size() - 1 - i];
      if (spaces.size(axis) == 1) continue;
      if (to.empty()) {
        to = axis;
      } else {
        spaces.unify(to, axis, why);
      }
    }
  }
  return all;
}

FRUGAL_INLINE void mark_place(std::set<AxisValues::Place>& set, AxisValue const& value,
                              std::size_t axis) {
  if (value.parameter != nullptr) set.emplace(value.parameter, value.dims[axis]);
}

}  // namespace frugal::detail
