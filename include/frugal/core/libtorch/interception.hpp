// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/tensor_map.hpp>
#include <frugal/core/libtorch/use_interception.hpp>
#include <frugal/inline.hpp>

namespace frugal {

// Modules of LibTorch have no forward hooks, and their forward is not virtual. So a layer that must
// not be edited is found by its weight: the operators of layers have a kernel of ours on a dispatch
// key that LibTorch leaves to others (DeferredInit), above autocast and autograd. What such a kernel
// calls is differentiated, cast and traced like the operator itself.
//
// The key is thread-local, as grad mode and autocast are. It is on in the thread that has
// intercepted a weight, and in those that call a trainer; others call use_interception().
// Programs that intercept nothing register nothing and pay nothing.

/// The call of a layer, as its weight's hooks see it. They may replace any of it.
struct LayerCall {
  enum class Operator { linear, conv2d, embedding, layer_norm, batch_norm };

  Operator op = Operator::linear;
  at::Tensor input{};   ///< of an embedding the indices
  at::Tensor weight{};  ///< as registered, before autocast
  /// Undefined also where LibTorch adds a linear layer's bias by an operator of its own.
  at::Tensor bias{};
  // conv2d
  std::vector<std::int64_t> stride{}, padding{}, dilation{};
  std::int64_t groups = 1;
  bool same_padding = false;  ///< padding "same"; `padding` is empty then
  // embedding
  std::int64_t padding_index = -1;
  bool scale_by_frequency = false, sparse = false;
  // layer_norm
  std::vector<std::int64_t> normalised{};
  double eps = 0;  ///< of a batch_norm too
  // batch_norm
  at::Tensor running_mean{}, running_variance{};
  bool training = false;  ///< statistics of the batch, which the running ones follow
  double momentum = 0;
  bool cudnn = true;

  /// The operator without any hook.
  FRUGAL_INLINE at::Tensor plain() const {
    std::optional<at::Tensor> const added = optional(bias);
    switch (op) {
      case Operator::conv2d:
        return same_padding ? at::conv2d(input, weight, added, stride, "same", dilation, groups)
                            : at::conv2d(input, weight, added, stride, padding, dilation, groups);
      case Operator::embedding:
        return at::embedding(weight, input, padding_index, scale_by_frequency, sparse);
      case Operator::layer_norm:
        return at::layer_norm(input, normalised, weight, added, eps);
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

 private:
  static std::optional<at::Tensor> optional(at::Tensor const& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
  }
};

class LayerHook;

/// Hooks of one weight, outermost first.
using LayerHooks = std::vector<std::shared_ptr<LayerHook>>;

/// What is left of a call after a hook: the hooks further in, and the operator.
class LayerRest {
 public:
  explicit LayerRest(std::span<std::shared_ptr<LayerHook> const> hooks) : hooks_(hooks) {}
  at::Tensor operator()(LayerCall const& call) const;
  /// Whether a hook further in adds to the output.
  bool adapts() const;

 private:
  std::span<std::shared_ptr<LayerHook> const> hooks_;
};

/// What happens in a layer's call. Called with interception off; from several threads at once if
/// the module is.
class LayerHook {
 public:
  /// Outer places see the result of inner ones.
  enum class Place {
    observe,  ///< looks at input and output: distillation, calibration
    adapt,    ///< adds to the output: LoRA
    compute,  ///< replaces the operator, or its weight: quantisation
  };

  LayerHook() = default;
  LayerHook(LayerHook const&) = delete;
  LayerHook& operator=(LayerHook const&) = delete;
  virtual ~LayerHook() = default;

  virtual Place place() const = 0;
  virtual at::Tensor call(LayerCall const& call, LayerRest const& rest) = 0;
};

inline at::Tensor LayerRest::operator()(LayerCall const& call) const {
  return hooks_.empty() ? call.plain() : hooks_.front()->call(call, LayerRest(hooks_.subspan(1)));
}
inline bool LayerRest::adapts() const {
  auto const adds = [](auto const& each) { return each->place() == LayerHook::Place::adapt; };
  return std::ranges::any_of(hooks_, adds);
}

namespace detail {

/// Every intercepted weight of the process.
class Interceptions {
 public:
  /// Never destroyed: a thread may still be in a layer when the process ends.
  FRUGAL_INLINE static Interceptions& all() {
    static auto* const made = new Interceptions;
    return *made;
  }

  FRUGAL_INLINE void add(at::Tensor const& weight, std::shared_ptr<LayerHook> hook) {
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

  FRUGAL_INLINE void remove(at::Tensor const& weight, LayerHook const& hook) {
    weights_.change(weight, [&](std::shared_ptr<LayerHooks const>& of) {
      LayerHooks hooks = of ? *of : LayerHooks();
      std::erase_if(hooks, [&](auto const& each) { return each.get() == &hook; });
      of = hooks.empty() ? nullptr : std::make_shared<LayerHooks const>(std::move(hooks));
    });
  }

  /// The hooks of a weight; null if it has none.
  std::shared_ptr<LayerHooks const> of(at::Tensor const& weight) const {
    return weights_.find(weight);
  }

 private:
  static void register_kernels();

  TensorMap<std::shared_ptr<LayerHooks const>> weights_;
};

struct InterceptedKernels {
  using IntList = at::IntArrayRef;
  using Optional = std::optional<at::Tensor> const&;

  // A hook's own calls of layers, and the operator's, are not intercepted again.
  using Off = c10::impl::ExcludeDispatchKeyGuard;

  static at::Tensor value(Optional tensor) { return tensor ? *tensor : at::Tensor(); }

  FRUGAL_INLINE static at::Tensor linear(at::Tensor const& input, at::Tensor const& weight,
                                         Optional bias) {
    Off const off(interception_key);
    auto const hooks = Interceptions::all().of(weight);
    if (!hooks) return at::linear(input, weight, bias);
    return LayerRest(*hooks)({.input = input, .weight = weight, .bias = value(bias)});
  }

  /// The weight of a linear layer, if a product's second factor is one, transposed:
  /// torch::nn::Linear multiplies by weight.t().
  FRUGAL_INLINE static at::Tensor transposed_weight(at::Tensor const& factor) {
    if (factor.dim() != 2 || !factor.is_view()) return {};
    at::Tensor weight(factor._base());
    bool const whole = weight.dim() == 2 && weight.is_same_size(factor.t()) &&
                       weight.strides() == factor.t().strides() &&
                       weight.storage_offset() == factor.storage_offset();
    return whole ? weight : at::Tensor();
  }
  static std::shared_ptr<LayerHooks const> hooks_of(at::Tensor const& weight) {
    return weight.defined() ? Interceptions::all().of(weight) : nullptr;
  }

  FRUGAL_INLINE static at::Tensor addmm(at::Tensor const& bias, at::Tensor const& input,
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

  // Not mm: the backward pass of both products uses it.
  FRUGAL_INLINE static at::Tensor matmul(at::Tensor const& input, at::Tensor const& factor) {
    Off const off(interception_key);
    at::Tensor const weight = transposed_weight(factor);
    auto const hooks = hooks_of(weight);
    if (!hooks) return at::matmul(input, factor);
    return LayerRest(*hooks)({.input = input, .weight = weight});
  }

  FRUGAL_INLINE static at::Tensor conv2d(at::Tensor const& input, at::Tensor const& weight,
                                         Optional bias, IntList stride, IntList padding,
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

  FRUGAL_INLINE static at::Tensor conv2d_named(at::Tensor const& input, at::Tensor const& weight,
                                               Optional bias, IntList stride,
                                               c10::string_view padding, IntList dilation,
                                               std::int64_t groups) {
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

  FRUGAL_INLINE static at::Tensor embedding(at::Tensor const& weight, at::Tensor const& indices,
                                            std::int64_t padding_index, bool scale, bool sparse) {
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

  FRUGAL_INLINE static at::Tensor layer_norm(at::Tensor const& input, IntList shape,
                                             Optional weight, Optional bias, double eps,
                                             bool cudnn) {
    Off const off(interception_key);
    auto const hooks = hooks_of(value(weight));
    if (!hooks) return at::layer_norm(input, shape, weight, bias, eps, cudnn);
    return LayerRest(*hooks)({.op = LayerCall::Operator::layer_norm,
                              .input = input,
                              .weight = *weight,
                              .bias = value(bias),
                              .normalised = shape.vec(),
                              .eps = eps});
  }

  /// One without weights has its running mean instead.
  FRUGAL_INLINE static at::Tensor batch_norm(at::Tensor const& input, Optional weight,
                                             Optional bias, Optional mean, Optional variance,
                                             bool training, double momentum, double eps,
                                             bool cudnn) {
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

  template <class Function>
  static void add(char const* name, char const* overload, Function* kernel) {
    // The handle would deregister the kernel; kernels stay for the rest of the process.
    static_cast<void>(new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerImpl(
        {name, overload}, interception_key,
        c10::KernelFunction::makeFromUnboxedRuntimeFunction(kernel), std::nullopt, nullptr,
        "frugal")));
  }
};

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

}  // namespace detail

/// Calls `hook` for every call of the layer with this weight, until the weight is gone or release()
/// is called. Hooks of one place are called in the order in which they came. Turns interception on
/// in this thread.
inline void intercept(at::Tensor const& weight, std::shared_ptr<LayerHook> hook) {
  detail::Interceptions::all().add(weight, std::move(hook));
}

/// Whether the calls of a linear layer with this weight are seen. torch::nn::Linear multiplies by a view
/// of its weight. A view of a view knows the first tensor alone, and one of a tensor that was made in
/// c10::InferenceMode knows none.
inline bool shows_products(at::Tensor const& weight) {
  return !weight.is_inference() && !weight.is_view();
}

/// Ends what intercept() began.
inline void release(at::Tensor const& weight, LayerHook const& hook) {
  detail::Interceptions::all().remove(weight, hook);
}

}  // namespace frugal
