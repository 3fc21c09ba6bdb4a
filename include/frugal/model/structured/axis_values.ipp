// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/structured/axis_values.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE Space Spaces::make(std::int64_t size) {
  nodes_.push_back({.parent = nodes_.size(), .size = size, .parts = {}, .why = {}});
  return nodes_.size() - 1;
}

FRUGAL_INLINE Axis Spaces::axis(std::int64_t size) { return size == 1 ? Axis{} : Axis{make(size)}; }

FRUGAL_INLINE Axis Spaces::locked_axis(std::int64_t size, std::string const& why) {
  Axis made = axis(size);
  lock(made, why);
  return made;
}

FRUGAL_INLINE std::int64_t Spaces::size(Axis const& axis) const {
  std::int64_t all = 1;
  for (Space const each : axis) all *= size(each);
  return all;
}

FRUGAL_INLINE Axis Spaces::resolved(Axis const& axis) const {
  Axis all;
  for (Space const each : axis) {
    Node const& node = nodes_[root(each)];
    if (node.parts.empty()) {
      all.push_back(root(each));
    } else {
      Axis const parts = resolved(node.parts);
      all.insert(all.end(), parts.begin(), parts.end());
    }
  }
  return all;
}

FRUGAL_INLINE void Spaces::lock(Axis const& axis, std::string const& why) {
  for (Space const each : resolved(axis)) {
    if (nodes_[each].why.empty()) nodes_[each].why = why;
  }
}

FRUGAL_INLINE std::pair<Space, Space> Spaces::split(Space space, std::int64_t outer) {
  Space const from = root(space);
  Space const first = make(outer);
  Space const second = make(nodes_[from].size / outer);
  nodes_[first].why = nodes_[second].why = nodes_[from].why;
  nodes_[from].parts = {first, second};
  return {first, second};
}

FRUGAL_INLINE void Spaces::unify(Axis const& one, Axis const& other, std::string const& why) {
  if (size(one) != size(other)) return refuse(one, other, why);
  Axis const first = resolved(one);
  Axis const second = resolved(other);
  std::deque<Space> a(first.begin(), first.end());
  std::deque<Space> b(second.begin(), second.end());
  while (!a.empty() && !b.empty()) {
    Space const x = root(a.front());
    Space const y = root(b.front());
    a.pop_front();
    b.pop_front();
    // A space that both axes have may have been split at its first place.
    bool const x_is_split = expand(x, a);
    bool const y_is_split = expand(y, b);
    if (x_is_split || y_is_split) {
      if (!x_is_split) a.push_front(x);
      if (!y_is_split) b.push_front(y);
      continue;
    }
    if (size(x) == size(y)) {
      merge(x, y);
    } else if (size(x) % size(y) == 0) {
      a.push_front(split(x, size(y)).second);
      merge(nodes_[x].parts.front(), y);
    } else if (size(y) % size(x) == 0) {
      b.push_front(split(y, size(x)).second);
      merge(nodes_[y].parts.front(), x);
    } else {
      return refuse(one, other, why);
    }
  }
}

FRUGAL_INLINE Space Spaces::root(Space space) const {
  while (nodes_[space].parent != space) space = nodes_[space].parent;
  return space;
}

FRUGAL_INLINE bool Spaces::expand(Space space, std::deque<Space>& into) const {
  Axis const& parts = nodes_[space].parts;
  into.insert(into.begin(), parts.begin(), parts.end());
  return !parts.empty();
}

FRUGAL_INLINE void Spaces::merge(Space one, Space other) {
  Space const a = root(one);
  Space const b = root(other);
  if (a == b) return;
  nodes_[b].parent = a;
  if (nodes_[a].why.empty()) nodes_[a].why = nodes_[b].why;
}

FRUGAL_INLINE void Spaces::refuse(Axis const& one, Axis const& other, std::string const& why) {
  lock(one, why);
  lock(other, why);
}

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
