// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace frugal::detail {

/// The positions along an axis of tensors that stand for the same thing everywhere: the channels of
/// a residual stream, the heads of an attention. What is removed of one is removed of all.
using Space = std::size_t;

/// An axis: the product of its spaces, the outermost first. Flattened channels and places are two
/// spaces; an axis of size 1 has none.
using Axis = std::vector<Space>;

/// Which spaces are one, which are split, and which must keep their size.
class Spaces {
 public:
  Space make(std::int64_t size);
  Axis axis(std::int64_t size);
  Axis locked_axis(std::int64_t size, std::string const& why);

  std::int64_t size(Space space) const { return nodes_[root(space)].size; }
  std::int64_t size(Axis const& axis) const;
  /// Empty if the space may be cut.
  std::string const& locked(Space space) const { return nodes_[root(space)].why; }

  /// In terms of spaces that are not split; the same names for the same spaces.
  Axis resolved(Axis const& axis) const;

  /// Their size stays, because of `why`; the first reason is kept.
  void lock(Axis const& axis, std::string const& why);

  /// Makes two parts of a space, `outer` and what is left.
  std::pair<Space, Space> split(Space space, std::int64_t outer);

  /// Both axes stand for the same. Axes that do not fit are locked.
  void unify(Axis const& one, Axis const& other, std::string const& why);

 private:
  struct Node {
    Space parent;
    std::int64_t size;
    Axis parts;
    std::string why;
  };

  Space root(Space space) const;
  bool expand(Space space, std::deque<Space>& into) const;
  void merge(Space one, Space other);
  void refuse(Axis const& one, Axis const& other, std::string const& why);

  std::vector<Node> nodes_;
};

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

  explicit AxisValues(torch::nn::Module& module);

  /// The axes of a parameter or buffer, in terms of spaces that are not split.
  std::vector<Axis> axes_of(at::Tensor const& tensor) const;

  bool knows(at::Tensor const& tensor) const;
  bool knows(std::vector<c10::IValue> const& tensors) const;
  void refuse(OperatorCall const& call);

  void keep(at::Tensor const& tensor, AxisValue value);
  AxisValue fresh(at::Tensor const& tensor, std::string const& why);
  /// The value of a tensor. One that no operator has made comes from outside.
  AxisValue& of(at::Tensor const& tensor);
  void lock_all(at::Tensor const& tensor, std::string const& why);
  void give(at::Tensor const& tensor, std::vector<Axis> axes);
  /// The axes of tensors that are broadcast to `shape`: those of each place are one.
  std::vector<Axis> broadcast(std::vector<at::Tensor> const& tensors, at::IntArrayRef shape,
                              std::string const& why);

 private:
  std::unordered_map<at::TensorImpl const*, AxisValue> values_;
  std::vector<at::Tensor> alive_;  ///< an address must not be another tensor's
};

void mark_place(std::set<AxisValues::Place>& set, AxisValue const& value, std::size_t axis);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/structured/axis_values.ipp>
#endif
