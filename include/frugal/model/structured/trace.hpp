// SPDX-License-Identifier: Apache-2.0
// Shapes: of a convolution the input [B, C, ...] and the weight [C', C / groups, ...]; of attention
// [..., H, T, D], with H heads, T positions, D width of a head.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
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

/// Follows the axes of parameters through one forward pass, operator by operator.
///
/// An operator with a rule is looked at as a whole, whatever it is made of; one without is looked
/// into, if it is composite. The axes of any other are locked, so that they keep their size.
class AxisTrace {
 public:
  /// A dimension of a parameter.
  using Place = std::pair<at::TensorImpl const*, std::size_t>;

  Spaces spaces{};
  std::set<Place> makes{};  ///< dimensions of weights that a layer's outputs are: rows
  std::set<Place> takes{};  ///< dimensions of weights that are multiplied by what came in: columns

  FRUGAL_INLINE explicit AxisTrace(torch::nn::Module& module) {
    auto const add = [&](at::Tensor const& tensor, bool is_parameter) {
      if (!tensor.defined() || values_.contains(tensor.unsafeGetTensorImpl())) return;
      Value value;
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

  /// Traces what `forward` does in this thread. Its result is what the caller sees: it stays.
  FRUGAL_INLINE void run(std::function<at::Tensor()> const& forward) {
    register_fallback();
    at::NoGradGuard const no_gradients;
    At const at(*this);
    at::Tensor const output = forward();
    lock_all(output, module_output);
  }

  /// The axes of a parameter or buffer, in terms of spaces that are not split.
  FRUGAL_INLINE std::vector<Axis> axes_of(at::Tensor const& tensor) const {
    std::vector<Axis> all;
    for (Axis const& each : values_.at(tensor.unsafeGetTensorImpl()).axes) {
      all.push_back(spaces.resolved(each));
    }
    return all;
  }

 private:
  struct Value {
    std::vector<Axis> axes{};
    at::TensorImpl const* parameter = nullptr;  ///< this one, transposed or not
    std::vector<std::size_t> dims{};            ///< of the parameter
  };
  /// A call, while its rule is applied.
  struct Call {
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
  using Rule = void (AxisTrace::*)(Call const&);

  // ---- following a call -------------------------------------------------------------------------

  // LibTorch leaves this key to others, and so does frugal's interception: it lies above that.
  static constexpr c10::DispatchKey key = c10::DispatchKey::TESTING_ONLY_GenericMode;

  class At {
   public:
    explicit At(AxisTrace& trace) : before_(std::exchange(active(), &trace)) {}
    At(At const&) = delete;
    At& operator=(At const&) = delete;
    ~At() { active() = before_; }

   private:
    AxisTrace* before_;
    c10::impl::IncludeDispatchKeyGuard include_{key};
  };
  static AxisTrace*& active() {
    thread_local AxisTrace* trace = nullptr;
    return trace;
  }

  FRUGAL_INLINE static void register_fallback() {
    static bool const once = [] {
      // The handle would deregister the fallback; it stays for the rest of the process.
      static_cast<void>(
          new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerFallback(
              key, c10::KernelFunction::makeFromBoxedFunction<&AxisTrace::follow>(), "frugal")));
      return true;
    }();
    static_cast<void>(once);
  }

  FRUGAL_INLINE static void follow(c10::OperatorHandle const& op, c10::DispatchKeySet keys,
                                   torch::jit::Stack* stack) {
    AxisTrace& trace = *active();
    std::size_t const count = op.schema().arguments().size();
    auto const begin = stack->end() - static_cast<std::ptrdiff_t>(count);
    Call call{.schema = op.schema(),
              .name = op.operator_name().name,
              .inputs = {begin, stack->end()},
              .outputs = {}};
    if (call.name.starts_with("aten::")) call.name.erase(0, 6);
    Rule rule = rule_of(call.name);
    bool const looks_inside =
        rule == nullptr && op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
    if (looks_inside) {
      op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key), stack);
    } else {
      c10::impl::ExcludeDispatchKeyGuard const off(key);
      op.callBoxed(stack);
    }
    call.outputs.assign(stack->end() - static_cast<std::ptrdiff_t>(op.schema().returns().size()),
                        stack->end());
    if (rule == nullptr && looks_inside && trace.knows(call.outputs)) return;
    if (rule == nullptr) rule = &AxisTrace::refuse;
    (trace.*rule)(call);
  }

  FRUGAL_INLINE bool knows(std::vector<c10::IValue> const& tensors) const {
    bool all = true;
    each_tensor(tensors, [&](at::Tensor const& each) {
      all = all && values_.contains(each.unsafeGetTensorImpl());
    });
    return all;
  }
  FRUGAL_INLINE void refuse(Call const& call) {
    std::string const why = "aten::" + call.name + " is not traced";
    each_tensor(call.inputs, [&](at::Tensor const& each) { lock_all(each, why); });
    each_tensor(call.outputs, [&](at::Tensor const& each) {
      if (!values_.contains(each.unsafeGetTensorImpl())) keep(each, fresh(each, why));
    });
  }

  template <class Values, class Use>
  static void each_tensor(Values const& values, Use&& use) {
    for (c10::IValue const& value : values) {
      if (value.isTensor() && value.toTensor().defined()) use(value.toTensor());
      if (value.isTensorList()) {
        for (at::Tensor const& each : value.toTensorVector()) use(each);
      }
    }
  }

  // ---- values -----------------------------------------------------------------------------------

  FRUGAL_INLINE void keep(at::Tensor const& tensor, Value value) {
    values_.insert_or_assign(tensor.unsafeGetTensorImpl(), std::move(value));
    alive_.push_back(tensor);
  }
  FRUGAL_INLINE Value fresh(at::Tensor const& tensor, std::string const& why) {
    Value value;
    for (std::int64_t const size : tensor.sizes()) {
      value.axes.push_back(spaces.locked_axis(size, why));
    }
    return value;
  }
  /// The value of a tensor. One that no operator has made comes from outside.
  FRUGAL_INLINE Value& of(at::Tensor const& tensor) {
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
  static std::size_t wrapped(std::int64_t dim, std::size_t dims) {
    return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(dims) : dim);
  }
  FRUGAL_INLINE static void mark(std::set<Place>& set, Value const& value, std::size_t axis) {
    if (value.parameter != nullptr) set.emplace(value.parameter, value.dims[axis]);
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

  // ---- rules ------------------------------------------------------------------------------------

  /// Each element of the output is made of those at the same place.
  FRUGAL_INLINE void pointwise(Call const& call) {
    std::vector<at::Tensor> tensors;
    each_tensor(call.inputs, [&](at::Tensor const& each) { tensors.push_back(each); });
    if (!call.output().defined()) return refuse(call);
    std::vector<Axis> axes = broadcast(tensors, call.output().sizes(), call.name);
    // In place, and for a result that is the input itself.
    bool const same = values_.contains(call.output().unsafeGetTensorImpl());
    if (!same) give(call.output(), std::move(axes));
  }

  FRUGAL_INLINE void linear(Call const& call) {
    at::Tensor const input = call.tensor("input");
    at::Tensor const bias = call.tensor("bias");
    Value const weight = of(call.tensor("weight"));
    std::vector<Axis> axes = of(input).axes;
    if (weight.axes.size() != 2) return refuse(call);
    spaces.unify(axes.back(), weight.axes[1], "linear");
    mark(takes, weight, 1);
    mark(makes, weight, 0);
    axes.back() = weight.axes[0];
    if (bias.defined()) spaces.unify(of(bias).axes.back(), axes.back(), "linear");
    give(call.output(), std::move(axes));
  }

  /// Products of matrices, batched or not.
  FRUGAL_INLINE void product(Call const& call) {
    bool const adds = call.name == "addmm" || call.name == "baddbmm";
    at::Tensor const one = call.inputs[adds ? 1 : 0].toTensor();
    at::Tensor const other = call.inputs[adds ? 2 : 1].toTensor();
    if (one.dim() < 2 || other.dim() < 2) return refuse(call);
    Value const a = of(one);
    Value const b = of(other);
    std::size_t const rows = b.axes.size() - 2;
    spaces.unify(a.axes.back(), b.axes[rows], call.name);
    if (b.parameter != nullptr && rows == 0) {
      mark(takes, b, 0);
      mark(makes, b, 1);
    } else {
      // What is masked is masked in the weights behind it, and here there are none.
      spaces.lock(a.axes.back(), "a product takes it with what is no weight");
    }
    std::vector<Axis> axes(static_cast<std::size_t>(call.output().dim()) - 2);
    auto const lay = [&](std::vector<Axis> const& from) {
      for (std::size_t i = 0; i + 2 < from.size(); ++i) {
        Axis const& axis = from[from.size() - 3 - i];
        Axis& to = axes[axes.size() - 1 - i];
        if (spaces.size(axis) == 1) continue;
        if (to.empty()) {
          to = axis;
        } else {
          spaces.unify(to, axis, call.name);
        }
      }
    };
    lay(a.axes);
    lay(b.axes);
    axes.push_back(a.axes[a.axes.size() - 2]);
    axes.push_back(b.axes.back());
    if (adds) {
      std::vector<Axis> const added = of(call.inputs[0].toTensor()).axes;
      for (std::size_t i = 0; i < added.size(); ++i) {
        Axis const& axis = added[added.size() - 1 - i];
        if (spaces.size(axis) != 1) spaces.unify(axis, axes[axes.size() - 1 - i], call.name);
      }
    }
    give(call.output(), std::move(axes));
  }

  FRUGAL_INLINE void convolution(Call const& call) {
    at::Tensor const input = call.tensor("input");
    at::Tensor const output = call.output();
    at::Tensor const bias = call.tensor("bias");
    Value const weight = of(call.tensor("weight"));
    if (input.dim() != static_cast<std::int64_t>(weight.axes.size())) return refuse(call);
    std::int64_t const groups = call.integer("groups", 1);
    bool const transposed = call.name.starts_with("conv_transpose");
    std::vector<Axis> axes = of(input).axes;
    Axis const came_in = axes[1];
    if (groups == 1) {
      std::size_t const in = transposed ? 0 : 1;
      spaces.unify(came_in, weight.axes[in], call.name);
      mark(takes, weight, in);
      mark(makes, weight, 1 - in);
      axes[1] = weight.axes[1 - in];
    } else if (!transposed && groups == input.size(1)) {
      // Depthwise: each channel has filters of its own.
      axes[1] = weight.axes[0];
      std::int64_t const each = output.size(1) / groups;
      Axis with_filters = came_in;
      if (each > 1) with_filters.push_back(spaces.locked_axis(each, inside_of_part).front());
      spaces.unify(with_filters, weight.axes[0], call.name);
    } else {
      spaces.lock(came_in, "a convolution has " + std::to_string(groups) + " groups");
      spaces.lock(weight.axes[0], "a convolution has " + std::to_string(groups) + " groups");
      axes[1] = spaces.locked_axis(output.size(1), "a grouped convolution");
    }
    if (bias.defined()) spaces.unify(of(bias).axes.back(), axes[1], call.name);
    for (std::size_t i = 2; i < axes.size(); ++i) {
      axes[i] = spaces.locked_axis(output.size(static_cast<std::int64_t>(i)), "it is a place");
    }
    give(output, std::move(axes));
  }

  /// Numbers for each channel: batch_norm, instance_norm, prelu.
  FRUGAL_INLINE void channelwise(Call const& call) {
    std::vector<Axis> const axes = of(call.inputs.front().toTensor()).axes;
    if (axes.size() < 2) return refuse(call);
    for (char const* const name : {"weight", "bias", "running_mean", "running_var"}) {
      at::Tensor const each = call.tensor(name);
      if (each.defined() && each.numel() > 1) {
        spaces.unify(of(each).axes.back(), axes[1], call.name);
      }
    }
    give(call.output(), axes);
  }

  /// Statistics over the last axes: what is removed would change them.
  FRUGAL_INLINE void layer_norm(Call const& call) {
    at::Tensor const input = call.tensor("input");
    std::vector<Axis> const axes = of(input).axes;
    std::size_t const count = call.find("normalized_shape")->toDimVector().size();
    for (std::size_t i = axes.size() - count; i < axes.size(); ++i) {
      spaces.lock(axes[i], call.name + " has statistics over it");
    }
    give(call.output(), axes);
  }
  FRUGAL_INLINE void group_norm(Call const& call) {
    std::vector<Axis> const axes = of(call.tensor("input")).axes;
    spaces.lock(axes[1], "group_norm has statistics over it");
    give(call.output(), axes);
  }

  FRUGAL_INLINE void embedding(Call const& call) {
    Value const weight = of(call.tensor("weight"));
    std::vector<Axis> axes = of(call.tensor("indices")).axes;
    spaces.lock(weight.axes[0], "an embedding is looked up by it");
    mark(makes, weight, 1);
    axes.push_back(weight.axes[1]);
    give(call.output(), std::move(axes));
  }

  /// Attention, where a head is a whole.
  FRUGAL_INLINE void attention(Call const& call) {
    at::Tensor const query = call.tensor("query");
    at::Tensor const mask = call.tensor("attn_mask");
    std::vector<Axis> axes = of(query).axes;
    std::vector<Axis> const keys = of(call.tensor("key")).axes;
    std::vector<Axis> const values = of(call.tensor("value")).axes;
    if (axes.size() < 3 || keys.size() != axes.size() || values.size() != axes.size()) {
      return refuse(call);
    }
    std::string const width = inside_of_part;
    for (std::vector<Axis> const* const each : {&std::as_const(axes), &keys, &values}) {
      spaces.lock(each->back(), width);
      spaces.lock((*each)[each->size() - 2], "attention goes over it");
    }
    for (std::size_t i = 0; i + 2 < axes.size(); ++i) {
      spaces.unify(keys[i], values[i], call.name);
      std::int64_t const of_keys = spaces.size(keys[i]);
      Axis grouped = keys[i];
      // Several heads of queries look at one of keys.
      if (spaces.size(axes[i]) != of_keys && of_keys != 0) {
        std::int64_t const each = spaces.size(axes[i]) / of_keys;
        grouped.push_back(spaces.locked_axis(each, inside_of_part).front());
      }
      spaces.unify(axes[i], grouped, call.name);
    }
    axes.back() = values.back();
    if (mask.defined()) {
      std::vector<Axis> const masked = of(mask).axes;
      for (std::size_t i = 2; i < masked.size(); ++i) {
        Axis const& axis = masked[masked.size() - 1 - i];
        if (spaces.size(axis) != 1) spaces.unify(axis, axes[axes.size() - 1 - i], call.name);
      }
    }
    give(call.output(), std::move(axes));
  }

  /// Pooling, padding, resizing: axes that keep their size are the same.
  FRUGAL_INLINE void by_size(Call const& call) {
    at::Tensor const input = call.inputs.front().toTensor();
    std::vector<Axis> const axes = of(input).axes;
    each_tensor(call.outputs, [&](at::Tensor const& output) {
      if (output.dim() != input.dim()) return refuse(call);
      std::vector<Axis> made = axes;
      for (std::size_t i = 0; i < made.size(); ++i) {
        auto const at = static_cast<std::int64_t>(i);
        if (output.size(at) == input.size(at)) continue;
        spaces.lock(made[i], call.name + " changes its size");
        made[i] = spaces.locked_axis(output.size(at), call.name);
      }
      give(output, std::move(made));
    });
  }

  /// mean, sum, amax: what is reduced must be whole.
  FRUGAL_INLINE void reduction(Call const& call) {
    at::Tensor const input = call.inputs.front().toTensor();
    c10::IValue const* const dims = call.find("dim");
    std::vector<Axis> const axes = of(input).axes;
    std::vector<bool> reduced(axes.size(), true);
    if (dims != nullptr && (dims->isIntList() || dims->isInt())) {
      c10::DimVector const given =
          dims->isInt() ? c10::DimVector{dims->toInt()} : dims->toDimVector();
      if (!given.empty()) reduced.assign(axes.size(), false);
      for (std::int64_t const each : given) reduced[wrapped(each, axes.size())] = true;
    }
    std::vector<Axis> made;
    bool const keeps = call.output().dim() == input.dim();
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (reduced[i]) spaces.lock(axes[i], "aten::" + call.name + " goes over it");
      if (!reduced[i]) made.push_back(axes[i]);
      if (reduced[i] && keeps) made.emplace_back();
    }
    each_tensor(call.outputs, [&](at::Tensor const& output) { give(output, made); });
  }
  FRUGAL_INLINE void softmax(Call const& call) {
    std::vector<Axis> const axes = of(call.inputs.front().toTensor()).axes;
    spaces.lock(axes[wrapped(call.integer("dim", -1), axes.size())], "softmax goes over it");
    give(call.output(), axes);
  }

  /// The same elements in another shape: view, flatten, squeeze.
  FRUGAL_INLINE void reshape(Call const& call) {
    at::Tensor const output = call.output();
    if (values_.contains(output.unsafeGetTensorImpl())) return;
    Axis flat;
    for (Axis const& axis : of(call.inputs.front().toTensor()).axes) {
      Axis const parts = spaces.resolved(axis);
      flat.insert(flat.end(), parts.begin(), parts.end());
    }
    std::deque<Space> left(flat.begin(), flat.end());
    std::vector<Axis> axes;
    for (std::int64_t const size : output.sizes()) {
      Axis axis;
      std::int64_t missing = size;
      while (missing > 1) {
        if (left.empty()) return refuse(call);
        Space const next = left.front();
        left.pop_front();
        std::int64_t const has = spaces.size(next);
        if (missing % has == 0) {
          axis.push_back(next);
          missing /= has;
        } else if (has % missing == 0) {
          auto const [outer, inner] = spaces.split(next, missing);
          spaces.lock({inner}, inside_of_part);
          axis.push_back(outer);
          left.push_front(inner);
          missing = 1;
        } else {
          return refuse(call);
        }
      }
      axes.push_back(std::move(axis));
    }
    give(output, std::move(axes));
  }

  FRUGAL_INLINE void permute(Call const& call) {
    Value const from = of(call.inputs.front().toTensor());
    std::size_t const dims = from.axes.size();
    std::vector<std::size_t> order(dims);
    for (std::size_t i = 0; i < dims; ++i) order[i] = i;
    if (call.name == "permute") {
      c10::DimVector const given = call.find("dims")->toDimVector();
      for (std::size_t i = 0; i < dims; ++i) order[i] = wrapped(given[i], dims);
    } else if (call.name == "t") {
      std::reverse(order.begin(), order.end());
    } else {
      std::swap(order[wrapped(call.integer("dim0", 0), dims)],
                order[wrapped(call.integer("dim1", 0), dims)]);
    }
    Value value{.parameter = from.parameter};
    for (std::size_t const each : order) {
      value.axes.push_back(from.axes[each]);
      if (from.parameter != nullptr) value.dims.push_back(from.dims[each]);
    }
    keep(call.output(), std::move(value));
  }

  FRUGAL_INLINE void expand(Call const& call) {
    at::Tensor const input = call.inputs.front().toTensor();
    std::vector<Axis> const axes = of(input).axes;
    std::vector<Axis> made;
    auto const more = static_cast<std::size_t>(call.output().dim()) - axes.size();
    for (std::size_t i = 0; i < static_cast<std::size_t>(call.output().dim()); ++i) {
      std::int64_t const size = call.output().size(static_cast<std::int64_t>(i));
      bool const same = i >= more && spaces.size(axes[i - more]) == size;
      if (!same && i >= more) spaces.lock(axes[i - more], call.name + " changes its size");
      made.push_back(same ? axes[i - more] : spaces.locked_axis(size, call.name));
    }
    give(call.output(), std::move(made));
  }

  /// A part of an axis, which must then be whole: select, slice, narrow.
  FRUGAL_INLINE void part(Call const& call) {
    at::Tensor const input = call.inputs.front().toTensor();
    std::vector<Axis> axes = of(input).axes;
    std::size_t const dim = wrapped(call.integer("dim", 0), axes.size());
    if (call.output().dim() < input.dim()) {
      spaces.lock(axes[dim], "aten::" + call.name + " takes one of it");
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(dim));
    } else if (call.output().sizes() != input.sizes()) {
      spaces.lock(axes[dim], "aten::" + call.name + " takes a part of it");
      axes[dim] = spaces.locked_axis(call.output().size(static_cast<std::int64_t>(dim)), call.name);
    }
    give(call.output(), std::move(axes));
  }

  /// Equal parts of an axis: each has the same inner space.
  FRUGAL_INLINE void parts(Call const& call) {
    at::Tensor const input = call.inputs.front().toTensor();
    std::vector<at::Tensor> outputs;
    each_tensor(call.outputs, [&](at::Tensor const& each) { outputs.push_back(each); });
    std::vector<Axis> axes = of(input).axes;
    std::size_t const dim = wrapped(call.integer("dim", 0), axes.size());
    auto const at = static_cast<std::int64_t>(dim);
    auto const count = static_cast<std::int64_t>(outputs.size());
    bool equal = count > 0 && input.size(at) == count * outputs.front().size(at);
    for (at::Tensor const& each : outputs) equal = equal && each.sizes() == outputs.front().sizes();
    if (!equal) return refuse(call);
    Axis inner = spaces.axis(outputs.front().size(at));
    Axis whole = spaces.locked_axis(count, inside_of_part);
    whole.insert(whole.end(), inner.begin(), inner.end());
    spaces.unify(axes[dim], whole, call.name);
    axes[dim] = inner;
    for (at::Tensor const& each : outputs) give(each, axes);
  }

  FRUGAL_INLINE void join(Call const& call) {
    std::vector<at::Tensor> inputs;
    each_tensor(call.inputs, [&](at::Tensor const& each) { inputs.push_back(each); });
    bool const stacks = call.name == "stack";
    std::size_t const dim =
        wrapped(call.integer("dim", 0), static_cast<std::size_t>(call.output().dim()));
    std::vector<Axis> axes = of(inputs.front()).axes;
    for (at::Tensor const& each : inputs) {
      std::vector<Axis> const others = of(each).axes;
      if (others.size() != axes.size()) return refuse(call);
      for (std::size_t i = 0; i < axes.size(); ++i) {
        if (i == dim && !stacks) {
          spaces.lock(others[i], "aten::cat joins it with another");
        } else {
          spaces.unify(axes[i], others[i], call.name);
        }
      }
    }
    Axis const joined =
        spaces.locked_axis(call.output().size(static_cast<std::int64_t>(dim)), call.name);
    if (stacks) {
      axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(dim), joined);
    } else {
      axes[dim] = joined;
    }
    give(call.output(), std::move(axes));
  }

  FRUGAL_INLINE static Rule rule_of(std::string const& name) {
    static std::unordered_map<std::string, Rule> const rules = [] {
      std::unordered_map<std::string, Rule> all;
      auto const add = [&](std::initializer_list<char const*> names, Rule rule) {
        for (char const* const each : names) all.emplace(each, rule);
      };
      for (char const* const name : {"relu",
                                     "relu6",
                                     "gelu",
                                     "silu",
                                     "sigmoid",
                                     "tanh",
                                     "hardtanh",
                                     "hardswish",
                                     "hardsigmoid",
                                     "leaky_relu",
                                     "elu",
                                     "selu",
                                     "celu",
                                     "mish",
                                     "softplus",
                                     "dropout",
                                     "feature_dropout",
                                     "alpha_dropout",
                                     "neg",
                                     "exp",
                                     "log",
                                     "sqrt",
                                     "rsqrt",
                                     "square",
                                     "abs",
                                     "sin",
                                     "cos",
                                     "erf",
                                     "pow",
                                     "clamp",
                                     "clamp_min",
                                     "clamp_max",
                                     "reciprocal",
                                     "add",
                                     "sub",
                                     "mul",
                                     "div",
                                     "masked_fill"}) {
        all.emplace(name, &AxisTrace::pointwise);
        all.emplace(std::string(name) + "_", &AxisTrace::pointwise);
      }
      add({"contiguous",  "clone",       "to",         "_to_copy",  "detach",      "alias",
           "lift_fresh",  "zeros_like",  "ones_like",  "full_like", "empty_like",  "rand_like",
           "rsub",        "maximum",     "minimum",    "where",     "eq",          "ne",
           "lt",          "le",          "gt",         "ge",        "logical_and", "logical_or",
           "logical_not", "bitwise_and", "bitwise_or", "lerp",      "addcmul",     "copy_"},
          &AxisTrace::pointwise);
      add({"linear"}, &AxisTrace::linear);
      add({"mm", "addmm", "bmm", "baddbmm", "matmul"}, &AxisTrace::product);
      add({"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
           "conv_transpose3d"},
          &AxisTrace::convolution);
      add({"batch_norm", "instance_norm", "prelu"}, &AxisTrace::channelwise);
      add({"layer_norm", "rms_norm"}, &AxisTrace::layer_norm);
      add({"group_norm"}, &AxisTrace::group_norm);
      add({"embedding"}, &AxisTrace::embedding);
      add({"scaled_dot_product_attention"}, &AxisTrace::attention);
      add({"max_pool1d",          "max_pool2d",
           "max_pool3d",          "max_pool2d_with_indices",
           "avg_pool1d",          "avg_pool2d",
           "avg_pool3d",          "adaptive_avg_pool1d",
           "adaptive_avg_pool2d", "adaptive_avg_pool3d",
           "adaptive_max_pool1d", "adaptive_max_pool2d",
           "adaptive_max_pool3d", "constant_pad_nd",
           "reflection_pad2d",    "replication_pad2d",
           "upsample_nearest2d",  "upsample_bilinear2d",
           "upsample_nearest1d",  "upsample_linear1d"},
          &AxisTrace::by_size);
      add({"mean", "sum", "amax", "amin", "norm", "linalg_vector_norm"}, &AxisTrace::reduction);
      add({"softmax", "log_softmax"}, &AxisTrace::softmax);
      add({"view", "reshape", "flatten", "unflatten", "_unsafe_view", "view_as", "reshape_as",
           "squeeze", "unsqueeze"},
          &AxisTrace::reshape);
      add({"t", "transpose", "permute"}, &AxisTrace::permute);
      add({"expand", "expand_as", "repeat"}, &AxisTrace::expand);
      add({"select", "slice", "narrow"}, &AxisTrace::part);
      add({"chunk", "split", "split_with_sizes"}, &AxisTrace::parts);
      add({"cat", "stack"}, &AxisTrace::join);
      return all;
    }();
    auto const found = rules.find(name);
    return found == rules.end() ? nullptr : found->second;
  }

  std::unordered_map<at::TensorImpl const*, Value> values_;
  std::vector<at::Tensor> alive_;  ///< an address must not be another tensor's
};

}  // namespace frugal::detail
