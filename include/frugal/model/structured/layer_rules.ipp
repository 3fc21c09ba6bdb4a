// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/structured/layer_rules.hpp>

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

FRUGAL_INLINE void pointwise(AxisValues& values, OperatorCall const& call) {
  std::vector<at::Tensor> tensors;
  each_traced(call.inputs, [&](at::Tensor const& each) { tensors.push_back(each); });
  if (!call.output().defined()) return values.refuse(call);
  std::vector<Axis> axes = values.broadcast(tensors, call.output().sizes(), call.name);
  // In place, and for a result that is the input itself.
  bool const same = values.knows(call.output());
  if (!same) values.give(call.output(), std::move(axes));
}

FRUGAL_INLINE void linear(AxisValues& values, OperatorCall const& call) {
  at::Tensor const input = call.tensor("input");
  at::Tensor const bias = call.tensor("bias");
  AxisValue const weight = values.of(call.tensor("weight"));
  std::vector<Axis> axes = values.of(input).axes;
  if (weight.axes.size() != 2) return values.refuse(call);
  values.spaces.unify(axes.back(), weight.axes[1], "linear");
  mark_place(values.takes, weight, 1);
  mark_place(values.makes, weight, 0);
  axes.back() = weight.axes[0];
  if (bias.defined()) values.spaces.unify(values.of(bias).axes.back(), axes.back(), "linear");
  values.give(call.output(), std::move(axes));
}

FRUGAL_INLINE void product(AxisValues& values, OperatorCall const& call) {
  bool const adds = call.name == "addmm" || call.name == "baddbmm";
  at::Tensor const one = call.inputs[adds ? 1 : 0].toTensor();
  at::Tensor const other = call.inputs[adds ? 2 : 1].toTensor();
  if (one.dim() < 2 || other.dim() < 2) return values.refuse(call);
  AxisValue const a = values.of(one);
  AxisValue const b = values.of(other);
  std::size_t const rows = b.axes.size() - 2;
  values.spaces.unify(a.axes.back(), b.axes[rows], call.name);
  if (b.parameter != nullptr && rows == 0) {
    mark_place(values.takes, b, 0);
    mark_place(values.makes, b, 1);
  } else {
    // What is masked is masked in the weights behind it, and here there are none.
    values.spaces.lock(a.axes.back(), "a product takes it with what is no weight");
  }
  std::vector<Axis> axes(static_cast<std::size_t>(call.output().dim()) - 2);
  auto const lay = [&](std::vector<Axis> const& from) {
    for (std::size_t i = 0; i + 2 < from.size(); ++i) {
      Axis const& axis = from[from.size() - 3 - i];
      Axis& to = axes[axes.size() - 1 - i];
      if (values.spaces.size(axis) == 1) continue;
      if (to.empty()) {
        to = axis;
      } else {
        values.spaces.unify(to, axis, call.name);
      }
    }
  };
  lay(a.axes);
  lay(b.axes);
  axes.push_back(a.axes[a.axes.size() - 2]);
  axes.push_back(b.axes.back());
  if (adds) {
    std::vector<Axis> const added = values.of(call.inputs[0].toTensor()).axes;
    for (std::size_t i = 0; i < added.size(); ++i) {
      Axis const& axis = added[added.size() - 1 - i];
      if (values.spaces.size(axis) != 1)
        values.spaces.unify(axis, axes[axes.size() - 1 - i], call.name);
    }
  }
  values.give(call.output(), std::move(axes));
}

FRUGAL_INLINE void convolution(AxisValues& values, OperatorCall const& call) {
  at::Tensor const input = call.tensor("input");
  at::Tensor const output = call.output();
  at::Tensor const bias = call.tensor("bias");
  AxisValue const weight = values.of(call.tensor("weight"));
  if (input.dim() != static_cast<std::int64_t>(weight.axes.size())) return values.refuse(call);
  std::int64_t const groups = call.integer("groups", 1);
  bool const transposed = call.name.starts_with("conv_transpose");
  std::vector<Axis> axes = values.of(input).axes;
  Axis const came_in = axes[1];
  if (groups == 1) {
    std::size_t const in = transposed ? 0 : 1;
    values.spaces.unify(came_in, weight.axes[in], call.name);
    mark_place(values.takes, weight, in);
    mark_place(values.makes, weight, 1 - in);
    axes[1] = weight.axes[1 - in];
  } else if (!transposed && groups == input.size(1)) {
    // Depthwise: each channel has filters of its own.
    axes[1] = weight.axes[0];
    std::int64_t const each = output.size(1) / groups;
    Axis with_filters = came_in;
    if (each > 1) with_filters.push_back(values.spaces.locked_axis(each, inside_of_part).front());
    values.spaces.unify(with_filters, weight.axes[0], call.name);
  } else {
    values.spaces.lock(came_in, "a convolution has " + std::to_string(groups) + " groups");
    values.spaces.lock(weight.axes[0], "a convolution has " + std::to_string(groups) + " groups");
    axes[1] = values.spaces.locked_axis(output.size(1), "a grouped convolution");
  }
  if (bias.defined()) values.spaces.unify(values.of(bias).axes.back(), axes[1], call.name);
  for (std::size_t i = 2; i < axes.size(); ++i) {
    axes[i] = values.spaces.locked_axis(output.size(static_cast<std::int64_t>(i)), "it is a place");
  }
  values.give(output, std::move(axes));
}

FRUGAL_INLINE void channelwise(AxisValues& values, OperatorCall const& call) {
  std::vector<Axis> const axes = values.of(call.inputs.front().toTensor()).axes;
  if (axes.size() < 2) return values.refuse(call);
  for (char const* const name : {"weight", "bias", "running_mean", "running_var"}) {
    at::Tensor const each = call.tensor(name);
    if (each.defined() && each.numel() > 1) {
      values.spaces.unify(values.of(each).axes.back(), axes[1], call.name);
    }
  }
  values.give(call.output(), axes);
}

FRUGAL_INLINE void layer_norm(AxisValues& values, OperatorCall const& call) {
  at::Tensor const input = call.tensor("input");
  std::vector<Axis> const axes = values.of(input).axes;
  std::size_t const count = call.find("normalized_shape")->toDimVector().size();
  for (std::size_t i = axes.size() - count; i < axes.size(); ++i) {
    values.spaces.lock(axes[i], call.name + " has statistics over it");
  }
  values.give(call.output(), axes);
}

FRUGAL_INLINE void group_norm(AxisValues& values, OperatorCall const& call) {
  std::vector<Axis> const axes = values.of(call.tensor("input")).axes;
  values.spaces.lock(axes[1], "group_norm has statistics over it");
  values.give(call.output(), axes);
}

FRUGAL_INLINE void embedding(AxisValues& values, OperatorCall const& call) {
  AxisValue const weight = values.of(call.tensor("weight"));
  std::vector<Axis> axes = values.of(call.tensor("indices")).axes;
  values.spaces.lock(weight.axes[0], "an embedding is looked up by it");
  mark_place(values.makes, weight, 1);
  axes.push_back(weight.axes[1]);
  values.give(call.output(), std::move(axes));
}

FRUGAL_INLINE void attention(AxisValues& values, OperatorCall const& call) {
  at::Tensor const query = call.tensor("query");
  at::Tensor const mask = call.tensor("attn_mask");
  std::vector<Axis> axes = values.of(query).axes;
  std::vector<Axis> const keys = values.of(call.tensor("key")).axes;
  std::vector<Axis> const of_values = values.of(call.tensor("value")).axes;
  if (axes.size() < 3 || keys.size() != axes.size() || of_values.size() != axes.size()) {
    return values.refuse(call);
  }
  std::string const width = inside_of_part;
  for (std::vector<Axis> const* const each : {&std::as_const(axes), &keys, &of_values}) {
    values.spaces.lock(each->back(), width);
    values.spaces.lock((*each)[each->size() - 2], "attention goes over it");
  }
  for (std::size_t i = 0; i + 2 < axes.size(); ++i) {
    values.spaces.unify(keys[i], of_values[i], call.name);
    std::int64_t const of_keys = values.spaces.size(keys[i]);
    Axis grouped = keys[i];
    // Several heads of queries look at one of keys.
    if (values.spaces.size(axes[i]) != of_keys && of_keys != 0) {
      std::int64_t const each = values.spaces.size(axes[i]) / of_keys;
      grouped.push_back(values.spaces.locked_axis(each, inside_of_part).front());
    }
    values.spaces.unify(axes[i], grouped, call.name);
  }
  axes.back() = of_values.back();
  if (mask.defined()) {
    std::vector<Axis> const masked = values.of(mask).axes;
    for (std::size_t i = 2; i < masked.size(); ++i) {
      Axis const& axis = masked[masked.size() - 1 - i];
      if (values.spaces.size(axis) != 1)
        values.spaces.unify(axis, axes[axes.size() - 1 - i], call.name);
    }
  }
  values.give(call.output(), std::move(axes));
}

FRUGAL_INLINE void softmax(AxisValues& values, OperatorCall const& call) {
  std::vector<Axis> const axes = values.of(call.inputs.front().toTensor()).axes;
  values.spaces.lock(axes[wrapped_dim(call.integer("dim", -1), axes.size())],
                     "softmax goes over it");
  values.give(call.output(), axes);
}

FRUGAL_INLINE void reduction(AxisValues& values, OperatorCall const& call) {
  at::Tensor const input = call.inputs.front().toTensor();
  c10::IValue const* const dims = call.find("dim");
  std::vector<Axis> const axes = values.of(input).axes;
  std::vector<bool> reduced(axes.size(), true);
  if (dims != nullptr && (dims->isIntList() || dims->isInt())) {
    c10::DimVector const given =
        dims->isInt() ? c10::DimVector{dims->toInt()} : dims->toDimVector();
    if (!given.empty()) reduced.assign(axes.size(), false);
    for (std::int64_t const each : given) reduced[wrapped_dim(each, axes.size())] = true;
  }
  std::vector<Axis> made;
  bool const keeps = call.output().dim() == input.dim();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (reduced[i]) values.spaces.lock(axes[i], "aten::" + call.name + " goes over it");
    if (!reduced[i]) made.push_back(axes[i]);
    if (reduced[i] && keeps) made.emplace_back();
  }
  each_traced(call.outputs, [&](at::Tensor const& output) { values.give(output, made); });
}

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
