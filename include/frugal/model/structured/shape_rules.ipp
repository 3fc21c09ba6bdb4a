// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/structured/shape_rules.hpp>

#include <frugal/inline.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail::axis_rules {

FRUGAL_INLINE void by_size(AxisValues& values, OperatorCall const& call) {
  at::Tensor const input = call.inputs.front().toTensor();
  std::vector<Axis> const axes = values.of(input).axes;
  each_traced(call.outputs, [&](at::Tensor const& output) {
    if (output.dim() != input.dim()) return values.refuse(call);
    std::vector<Axis> made = axes;
    for (std::size_t i = 0; i < made.size(); ++i) {
      auto const at = static_cast<std::int64_t>(i);
      if (output.size(at) == input.size(at)) continue;
      values.spaces.lock(made[i], call.name + " changes its size");
      made[i] = values.spaces.locked_axis(output.size(at), call.name);
    }
    values.give(output, std::move(made));
  });
}

FRUGAL_INLINE void reshape(AxisValues& values, OperatorCall const& call) {
  at::Tensor const output = call.output();
  if (values.knows(output)) return;
  Axis flat;
  for (Axis const& axis : values.of(call.inputs.front().toTensor()).axes) {
    Axis const parts = values.spaces.resolved(axis);
    flat.insert(flat.end(), parts.begin(), parts.end());
  }
  std::deque<Space> left(flat.begin(), flat.end());
  std::vector<Axis> axes;
  for (std::int64_t const size : output.sizes()) {
    Axis axis;
    std::int64_t missing = size;
    while (missing > 1) {
      if (left.empty()) return values.refuse(call);
      Space const next = left.front();
      left.pop_front();
      std::int64_t const has = values.spaces.size(next);
      if (missing % has == 0) {
        axis.push_back(next);
        missing /= has;
      } else if (has % missing == 0) {
        auto const [outer, inner] = values.spaces.split(next, missing);
        values.spaces.lock({inner}, inside_of_part);
        axis.push_back(outer);
        left.push_front(inner);
        missing = 1;
      } else {
        return values.refuse(call);
      }
    }
    axes.push_back(std::move(axis));
  }
  values.give(output, std::move(axes));
}

FRUGAL_INLINE void permute(AxisValues& values, OperatorCall const& call) {
  AxisValue const from = values.of(call.inputs.front().toTensor());
  std::size_t const dims = from.axes.size();
  std::vector<std::size_t> order(dims);
  for (std::size_t i = 0; i < dims; ++i) order[i] = i;
  if (call.name == "permute") {
    c10::DimVector const given = call.find("dims")->toDimVector();
    for (std::size_t i = 0; i < dims; ++i) order[i] = wrapped_dim(given[i], dims);
  } else if (call.name == "t") {
    std::reverse(order.begin(), order.end());
  } else {
    std::swap(order[wrapped_dim(call.integer("dim0", 0), dims)],
              order[wrapped_dim(call.integer("dim1", 0), dims)]);
  }
  AxisValue value{.parameter = from.parameter};
  for (std::size_t const each : order) {
    value.axes.push_back(from.axes[each]);
    if (from.parameter != nullptr) value.dims.push_back(from.dims[each]);
  }
  values.keep(call.output(), std::move(value));
}

FRUGAL_INLINE void expand(AxisValues& values, OperatorCall const& call) {
  at::Tensor const input = call.inputs.front().toTensor();
  std::vector<Axis> const axes = values.of(input).axes;
  std::vector<Axis> made;
  auto const more = static_cast<std::size_t>(call.output().dim()) - axes.size();
  for (std::size_t i = 0; i < static_cast<std::size_t>(call.output().dim()); ++i) {
    std::int64_t const size = call.output().size(static_cast<std::int64_t>(i));
    bool const same = i >= more && values.spaces.size(axes[i - more]) == size;
    if (!same && i >= more) values.spaces.lock(axes[i - more], call.name + " changes its size");
    made.push_back(same ? axes[i - more] : values.spaces.locked_axis(size, call.name));
  }
  values.give(call.output(), std::move(made));
}

FRUGAL_INLINE void part(AxisValues& values, OperatorCall const& call) {
  at::Tensor const input = call.inputs.front().toTensor();
  std::vector<Axis> axes = values.of(input).axes;
  std::size_t const dim = wrapped_dim(call.integer("dim", 0), axes.size());
  if (call.output().dim() < input.dim()) {
    values.spaces.lock(axes[dim], "aten::" + call.name + " takes one of it");
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(dim));
  } else if (call.output().sizes() != input.sizes()) {
    values.spaces.lock(axes[dim], "aten::" + call.name + " takes a part of it");
    axes[dim] =
        values.spaces.locked_axis(call.output().size(static_cast<std::int64_t>(dim)), call.name);
  }
  values.give(call.output(), std::move(axes));
}

FRUGAL_INLINE void parts(AxisValues& values, OperatorCall const& call) {
  at::Tensor const input = call.inputs.front().toTensor();
  std::vector<at::Tensor> outputs;
  each_traced(call.outputs, [&](at::Tensor const& each) { outputs.push_back(each); });
  std::vector<Axis> axes = values.of(input).axes;
  std::size_t const dim = wrapped_dim(call.integer("dim", 0), axes.size());
  auto const at = static_cast<std::int64_t>(dim);
  auto const count = static_cast<std::int64_t>(outputs.size());
  bool equal = count > 0 && input.size(at) == count * outputs.front().size(at);
  for (at::Tensor const& each : outputs) equal = equal && each.sizes() == outputs.front().sizes();
  if (!equal) return values.refuse(call);
  Axis inner = values.spaces.axis(outputs.front().size(at));
  Axis whole = values.spaces.locked_axis(count, inside_of_part);
  whole.insert(whole.end(), inner.begin(), inner.end());
  values.spaces.unify(axes[dim], whole, call.name);
  axes[dim] = inner;
  for (at::Tensor const& each : outputs) values.give(each, axes);
}

FRUGAL_INLINE void join(AxisValues& values, OperatorCall const& call) {
  std::vector<at::Tensor> inputs;
  each_traced(call.inputs, [&](at::Tensor const& each) { inputs.push_back(each); });
  bool const stacks = call.name == "stack";
  std::size_t const dim =
      wrapped_dim(call.integer("dim", 0), static_cast<std::size_t>(call.output().dim()));
  std::vector<Axis> axes = values.of(inputs.front()).axes;
  for (at::Tensor const& each : inputs) {
    std::vector<Axis> const others = values.of(each).axes;
    if (others.size() != axes.size()) return values.refuse(call);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (i == dim && !stacks) {
        values.spaces.lock(others[i], "aten::cat joins it with another");
      } else {
        values.spaces.unify(axes[i], others[i], call.name);
      }
    }
  }
  Axis const joined =
      values.spaces.locked_axis(call.output().size(static_cast<std::int64_t>(dim)), call.name);
  if (stacks) {
    axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(dim), joined);
  } else {
    axes[dim] = joined;
  }
  values.give(call.output(), std::move(axes));
}

}  // namespace frugal::detail::axis_rules
