// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/interception.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE at::Tensor LayerCall::plain() const {
  std::optional<at::Tensor> const added = optional(bias);
  switch (op) {
    case Operator::conv2d:
      return same_padding ? at::conv2d(input, weight, added, stride, "same", dilation, groups)
                          : at::conv2d(input, weight, added, stride, padding, dilation, groups);
    case Operator::embedding:
      return at::embedding(weight, input, padding_index, scale_by_frequency, sparse);
    case Operator::layer_norm:
      return at::layer_norm(input, normalized, weight, added, eps);
    case Operator::batch_norm:
      return at::batch_norm(input, optional(weight), added, optional(running_mean),
                            optional(running_variance), training, momentum, eps, cudnn);
    case Operator::linear:
      break;
  }
  if (input.dim() == 2 && bias.defined()) return at::addmm(bias, input, weight.t());
  at::Tensor product = input.matmul(weight.t());
  return bias.defined() ? product.add_(bias) : product;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE Interceptions& Interceptions::all() {
  static auto* const made = new Interceptions;
  return *made;
}

FRUGAL_INLINE void Interceptions::add(at::Tensor const& weight, std::shared_ptr<LayerHook> hook) {
  register_kernels();
  weights_.change(weight, [&](std::shared_ptr<LayerHooks const>& of) {
    LayerHooks hooks = of ? *of : LayerHooks();
    auto const after = [&](auto const& each) { return each->place() > hook->place(); };
    hooks.insert(std::ranges::find_if(hooks, after), std::move(hook));
    of = std::make_shared<LayerHooks const>(std::move(hooks));
  });
  anything_intercepted = true;
  use_interception();
}

FRUGAL_INLINE void Interceptions::remove(at::Tensor const& weight, LayerHook const& hook) {
  weights_.change(weight, [&](std::shared_ptr<LayerHooks const>& of) {
    LayerHooks hooks = of ? *of : LayerHooks();
    std::erase_if(hooks, [&](auto const& each) { return each.get() == &hook; });
    of = hooks.empty() ? nullptr : std::make_shared<LayerHooks const>(std::move(hooks));
  });
}

FRUGAL_INLINE at::Tensor InterceptedKernels::linear(at::Tensor const& input,
                                                    at::Tensor const& weight, Optional bias) {
  Off const off(interception_key);
  auto const hooks = Interceptions::all().of(weight);
  if (!hooks) return at::linear(input, weight, bias);
  return LayerRest(*hooks)({.input = input, .weight = weight, .bias = value(bias)});
}

FRUGAL_INLINE at::Tensor InterceptedKernels::transposed_weight(at::Tensor const& factor) {
  if (factor.dim() != 2 || !factor.is_view()) return {};
  at::Tensor weight(factor._base());
  bool const whole = weight.dim() == 2 && weight.is_same_size(factor.t()) &&
                     weight.strides() == factor.t().strides() &&
                     weight.storage_offset() == factor.storage_offset();
  return whole ? weight : at::Tensor();
}

FRUGAL_INLINE at::Tensor InterceptedKernels::addmm(at::Tensor const& bias, at::Tensor const& input,
                                                   at::Tensor const& factor, at::Scalar const& beta,
                                                   at::Scalar const& alpha) {
  Off const off(interception_key);
  if (beta.equal(1) && alpha.equal(1)) {
    at::Tensor const weight = transposed_weight(factor);
    auto const hooks = hooks_of(weight);
    if (hooks) return LayerRest(*hooks)({.input = input, .weight = weight, .bias = bias});
  }
  return at::addmm(bias, input, factor, beta, alpha);
}

FRUGAL_INLINE at::Tensor InterceptedKernels::matmul(at::Tensor const& input,
                                                    at::Tensor const& factor) {
  Off const off(interception_key);
  at::Tensor const weight = transposed_weight(factor);
  auto const hooks = hooks_of(weight);
  if (!hooks) return at::matmul(input, factor);
  return LayerRest(*hooks)({.input = input, .weight = weight});
}

FRUGAL_INLINE at::Tensor InterceptedKernels::conv2d(at::Tensor const& input,
                                                    at::Tensor const& weight, Optional bias,
                                                    IntList stride, IntList padding,
                                                    IntList dilation, std::int64_t groups) {
  Off const off(interception_key);
  auto const hooks = Interceptions::all().of(weight);
  if (!hooks) return at::conv2d(input, weight, bias, stride, padding, dilation, groups);
  return LayerRest(*hooks)({.op = LayerCall::Operator::conv2d,
                            .input = input,
                            .weight = weight,
                            .bias = value(bias),
                            .stride = stride.vec(),
                            .padding = padding.vec(),
                            .dilation = dilation.vec(),
                            .groups = groups});
}

FRUGAL_INLINE at::Tensor InterceptedKernels::conv2d_named(at::Tensor const& input,
                                                          at::Tensor const& weight, Optional bias,
                                                          IntList stride, c10::string_view padding,
                                                          IntList dilation, std::int64_t groups) {
  Off const off(interception_key);
  auto const hooks = Interceptions::all().of(weight);
  if (!hooks) return at::conv2d(input, weight, bias, stride, padding, dilation, groups);
  bool const same = padding == "same";
  return LayerRest(*hooks)(
      {.op = LayerCall::Operator::conv2d,
       .input = input,
       .weight = weight,
       .bias = value(bias),
       .stride = stride.vec(),
       .padding = same ? std::vector<std::int64_t>() : std::vector<std::int64_t>(2, 0),
       .dilation = dilation.vec(),
       .groups = groups,
       .same_padding = same});
}

FRUGAL_INLINE at::Tensor InterceptedKernels::embedding(at::Tensor const& weight,
                                                       at::Tensor const& indices,
                                                       std::int64_t padding_index, bool scale,
                                                       bool sparse) {
  Off const off(interception_key);
  auto const hooks = Interceptions::all().of(weight);
  if (!hooks) return at::embedding(weight, indices, padding_index, scale, sparse);
  return LayerRest(*hooks)({.op = LayerCall::Operator::embedding,
                            .input = indices,
                            .weight = weight,
                            .padding_index = padding_index,
                            .scale_by_frequency = scale,
                            .sparse = sparse});
}

FRUGAL_INLINE at::Tensor InterceptedKernels::layer_norm(at::Tensor const& input, IntList shape,
                                                        Optional weight, Optional bias, double eps,
                                                        bool cudnn) {
  Off const off(interception_key);
  auto const hooks = hooks_of(value(weight));
  if (!hooks) return at::layer_norm(input, shape, weight, bias, eps, cudnn);
  return LayerRest(*hooks)({.op = LayerCall::Operator::layer_norm,
                            .input = input,
                            .weight = *weight,
                            .bias = value(bias),
                            .normalized = shape.vec(),
                            .eps = eps});
}

FRUGAL_INLINE at::Tensor InterceptedKernels::batch_norm(at::Tensor const& input, Optional weight,
                                                        Optional bias, Optional mean,
                                                        Optional variance, bool training,
                                                        double momentum, double eps, bool cudnn) {
  Off const off(interception_key);
  at::Tensor const scale = value(weight);
  auto const hooks = hooks_of(scale.defined() ? scale : value(mean));
  if (!hooks) {
    return at::batch_norm(input, weight, bias, mean, variance, training, momentum, eps, cudnn);
  }
  return LayerRest(*hooks)({.op = LayerCall::Operator::batch_norm,
                            .input = input,
                            .weight = scale,
                            .bias = value(bias),
                            .eps = eps,
                            .running_mean = value(mean),
                            .running_variance = value(variance),
                            .training = training,
                            .momentum = momentum,
                            .cudnn = cudnn});
}

FRUGAL_INLINE void Interceptions::register_kernels() {
  static bool const once = [] {
    using K = InterceptedKernels;
    static_cast<void>(new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerFallback(
        interception_key, c10::KernelFunction::makeFallthrough(), "frugal")));
    K::add("aten::linear", "", &K::linear);
    K::add("aten::addmm", "", &K::addmm);
    K::add("aten::matmul", "", &K::matmul);
    K::add("aten::conv2d", "", &K::conv2d);
    K::add("aten::conv2d", "padding", &K::conv2d_named);
    K::add("aten::embedding", "", &K::embedding);
    K::add("aten::layer_norm", "", &K::layer_norm);
    K::add("aten::batch_norm", "", &K::batch_norm);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace frugal::detail
