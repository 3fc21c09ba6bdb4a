// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/structured/trace.hpp>

#include <frugal/inline.hpp>
#include <frugal/model/structured/layer_rules.hpp>

#include <cstddef>
#include <initializer_list>
#include <unordered_map>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE AxisRule axis_rule_of(std::string const& name) {
  static std::unordered_map<std::string, AxisRule> const rules = [] {
    std::unordered_map<std::string, AxisRule> all;
    auto const add = [&](std::initializer_list<char const*> names, AxisRule rule) {
      for (char const* const each : names) all.emplace(each, rule);
    };
    for (char const* const each : {"relu",
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
      all.emplace(each, &axis_rules::pointwise);
      all.emplace(std::string(each) + "_", &axis_rules::pointwise);
    }
    add({"contiguous",  "clone",       "to",         "_to_copy",  "detach",      "alias",
         "lift_fresh",  "zeros_like",  "ones_like",  "full_like", "empty_like",  "rand_like",
         "rsub",        "maximum",     "minimum",    "where",     "eq",          "ne",
         "lt",          "le",          "gt",         "ge",        "logical_and", "logical_or",
         "logical_not", "bitwise_and", "bitwise_or", "lerp",      "addcmul",     "copy_"},
        &axis_rules::pointwise);
    add({"linear"}, &axis_rules::linear);
    add({"mm", "addmm", "bmm", "baddbmm", "matmul"}, &axis_rules::product);
    add({"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"},
        &axis_rules::convolution);
    add({"batch_norm", "instance_norm", "prelu"}, &axis_rules::channelwise);
    add({"layer_norm", "rms_norm"}, &axis_rules::layer_norm);
    add({"group_norm"}, &axis_rules::group_norm);
    add({"embedding"}, &axis_rules::embedding);
    add({"scaled_dot_product_attention"}, &axis_rules::attention);
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
        &axis_rules::by_size);
    add({"mean", "sum", "amax", "amin", "norm", "linalg_vector_norm"}, &axis_rules::reduction);
    add({"softmax", "log_softmax"}, &axis_rules::softmax);
    add({"view", "reshape", "flatten", "unflatten", "_unsafe_view", "view_as", "reshape_as",
         "squeeze", "unsqueeze"},
        &axis_rules::reshape);
    add({"t", "transpose", "permute"}, &axis_rules::permute);
    add({"expand", "expand_as", "repeat"}, &axis_rules::expand);
    add({"select", "slice", "narrow"}, &axis_rules::part);
    add({"chunk", "split", "split_with_sizes"}, &axis_rules::parts);
    add({"cat", "stack"}, &axis_rules::join);
    return all;
  }();
  auto const found = rules.find(name);
  return found == rules.end() ? nullptr : found->second;
}

FRUGAL_INLINE void AxisTrace::run(std::function<at::Tensor()> const& forward) {
  register_fallback();
  at::NoGradGuard const no_gradients;
  At const at(*this);
  at::Tensor const output = forward();
  lock_all(output, module_output);
}

FRUGAL_INLINE void AxisTrace::register_fallback() {
  static bool const once = [] {
    // The handle would deregister the fallback; it stays for the rest of the process.
    static_cast<void>(new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerFallback(
        key, c10::KernelFunction::makeFromBoxedFunction<&AxisTrace::follow>(), "frugal")));
    return true;
  }();
  static_cast<void>(once);
}

FRUGAL_INLINE void AxisTrace::follow(c10::OperatorHandle const& op, c10::DispatchKeySet keys,
                                     torch::jit::Stack* stack) {
  AxisTrace& trace = *active();
  std::size_t const count = op.schema().arguments().size();
  auto const begin = stack->end() - static_cast<std::ptrdiff_t>(count);
  OperatorCall call{.schema = op.schema(),
                    .name = op.operator_name().name,
                    .inputs = {begin, stack->end()},
                    .outputs = {}};
  if (call.name.starts_with("aten::")) call.name.erase(0, 6);
  AxisRule const rule = axis_rule_of(call.name);
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
  if (rule != nullptr) {
    rule(trace, call);
  } else if (!looks_inside || !trace.knows(call.outputs)) {
    trace.refuse(call);
  }
}

}  // namespace frugal::detail
