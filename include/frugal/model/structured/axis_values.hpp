// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>
#include <frugal/model/structured/spaces.hpp>

namespace frugal::detail {

// Why spaces keep their size: what lies within a group's parts, and what the caller sees.
inline constexpr char const* inside_of_part = "inside of a part";
inline constexpr char const* module_output = "it is the module's output";

/// A tensor of the forward pass.
struct AxisValue {
  std::vector<Axis> axes{};
  at::TensorImpl const* parameter = nullptr;  ///< this one, transposed or not
  std::vector<std::size_t> dims{};            ///< of the parameter
};

/// A call, while its rule is applied.
struct OperatorCall {
  c10::FunctionSchema const& schema;
  std::string name;
  std::vector<c10::IValue> inputs;
  std::vector<c10::IValue> outputs;

  c10::IValue const* find(std::string_view argument) const {
    for (std::size_t i = 0; i < schema.arguments().size() && i < inputs.size(); ++i) {
      if (schema.arguments()[i].name() == argument) return &inputs[i];
    }
    return nullptr;
  }
  at::Tensor tensor(std::string_view argument) const {
    c10::IValue const* const found = find(argument);
    return found != nullptr && found->isTensor() ? found->toTensor() : at::Tensor();
  }
  std::int64_t integer(std::string_view argument, std::int64_t otherwise) const {
    c10::IValue const* const found = find(argument);
    return found != nullptr && found->isInt() ? found->toInt() : otherwise;
  }
  at::Tensor output() const {
    return !outputs.empty() && outputs.front().isTensor() ? outputs.front().toTensor()
                                                          : at::Tensor();
  }
};

template <class Use>
void each_traced(std::vector<c10::IValue> const& values, Use&& use) {
  for (c10::IValue const& value : values) {
    if (value.isTensor() && value.toTensor().defined()) use(value.toTensor());
    if (value.isTensorList()) {
      for (at::Tensor const& each : value.toTensorVector()) use(each);
    }
  }
}

inline std::size_t wrapped_dim(std::int64_t dim, std::size_t dims) {
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(dims) : dim);
}

/// The axes of every tensor of a forward pass, and which dimensions of parameters they come from.
class AxisValues {
 public:
  /// A dimension of a parameter.
  using Place = std::pair<at::TensorImpl const*, std::size_t>;

  Spaces spaces{};
  std::set<Place> makes{};  ///< dimensions of weights that a layer's outputs are: rows
  std::set<Place> takes{};  ///< dimensions of weights that are multiplied by what came in: columns

  FRUGAL_INLINE explicit AxisValues(torch::nn::Module& module) {
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

  /// The axes of a parameter or buffer, in terms of spaces that are not split.
  FRUGAL_INLINE std::vector<Axis> axes_of(at::Tensor const& tensor) const {
    std::vector<Axis> all;
    for (Axis const& each : values_.at(tensor.unsafeGetTensorImpl()).axes) {
      all.push_back(spaces.resolved(each));
    }
    return all;
  }

  FRUGAL_INLINE bool knows(at::Tensor const& tensor) const {
    return values_.contains(tensor.unsafeGetTensorImpl());
  }
  FRUGAL_INLINE bool knows(std::vector<c10::IValue> const& tensors) const {
    bool all = true;
    each_traced(tensors, [&](at::Tensor const& each) {
      all = all && values_.contains(each.unsafeGetTensorImpl());
    });
    return all;
  }
  FRUGAL_INLINE void refuse(OperatorCall const& call) {
    std::string const why = "aten::" + call.name + " is not traced";
    each_traced(call.inputs, [&](at::Tensor const& each) { lock_all(each, why); });
    each_traced(call.outputs, [&](at::Tensor const& each) {
      if (!values_.contains(each.unsafeGetTensorImpl())) keep(each, fresh(each, why));
    });
  }

  FRUGAL_INLINE void keep(at::Tensor const& tensor, AxisValue value) {
    values_.insert_or_assign(tensor.unsafeGetTensorImpl(), std::move(value));
    alive_.push_back(tensor);
  }
  FRUGAL_INLINE AxisValue fresh(at::Tensor const& tensor, std::string const& why) {
    AxisValue value;
    for (std::int64_t const size : tensor.sizes()) {
      value.axes.push_back(spaces.locked_axis(size, why));
    }
    return value;
  }
  /// The value of a tensor. One that no operator has made comes from outside.
  FRUGAL_INLINE AxisValue& of(at::Tensor const& tensor) {
    auto const found = values_.find(tensor.unsafeGetTensorImpl());
    if (found != values_.end()) return found->second;
    keep(tensor, fresh(tensor, "a tensor from outside has it"));
    return values_.at(tensor.unsafeGetTensorImpl());
  }
  FRUGAL_INLINE void lock_all(at::Tensor const& tensor, std::string const& why) {
    if (!tensor.defined()) return;
    for (Axis const& each : of(tensor).axes) spaces.lock(each, why);
  }
  FRUGAL_INLINE void give(at::Tensor const& tensor, std::vector<Axis> axes) {
    if (tensor.defined()) keep(tensor, {.axes = std::move(axes)});
  }
  /// The axes of tensors that are broadcast to `shape`: those of each place are one.
  FRUGAL_INLINE std::vector<Axis> broadcast(std::vector<at::Tensor> const& tensors,
                                            at::IntArrayRef shape, std::string const& why) {
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

 private:
  std::unordered_map<at::TensorImpl const*, AxisValue> values_;
  std::vector<at::Tensor> alive_;  ///< an address must not be another tensor's
};

FRUGAL_INLINE void mark_place(std::set<AxisValues::Place>& set, AxisValue const& value,
                              std::size_t axis) {
  if (value.parameter != nullptr) set.emplace(value.parameter, value.dims[axis]);
}

}  // namespace frugal::detail
