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
  std::vector<std::int64_t> normalized{};
  double eps = 0;  ///< of a batch_norm too
  // batch_norm
  at::Tensor running_mean{}, running_variance{};
  bool training = false;  ///< statistics of the batch, which the running ones follow
  double momentum = 0;
  bool cudnn = true;

  /// The operator without any hook.
  at::Tensor plain() const;

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
    compute,  ///< replaces the operator, or its weight: quantization
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
  static Interceptions& all();

  void add(at::Tensor const& weight, std::shared_ptr<LayerHook> hook);

  void remove(at::Tensor const& weight, LayerHook const& hook);

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

  static at::Tensor linear(at::Tensor const& input, at::Tensor const& weight, Optional bias);

  /// The weight of a linear layer, if a product's second factor is one, transposed:
  /// torch::nn::Linear multiplies by weight.t().
  static at::Tensor transposed_weight(at::Tensor const& factor);
  static std::shared_ptr<LayerHooks const> hooks_of(at::Tensor const& weight) {
    return weight.defined() ? Interceptions::all().of(weight) : nullptr;
  }

  static at::Tensor addmm(at::Tensor const& bias, at::Tensor const& input, at::Tensor const& factor,
                          at::Scalar const& beta, at::Scalar const& alpha);

  // Not mm: the backward pass of both products uses it.
  static at::Tensor matmul(at::Tensor const& input, at::Tensor const& factor);

  static at::Tensor conv2d(at::Tensor const& input, at::Tensor const& weight, Optional bias,
                           IntList stride, IntList padding, IntList dilation, std::int64_t groups);

  static at::Tensor conv2d_named(at::Tensor const& input, at::Tensor const& weight, Optional bias,
                                 IntList stride, c10::string_view padding, IntList dilation,
                                 std::int64_t groups);

  static at::Tensor embedding(at::Tensor const& weight, at::Tensor const& indices,
                              std::int64_t padding_index, bool scale, bool sparse);

  static at::Tensor layer_norm(at::Tensor const& input, IntList shape, Optional weight,
                               Optional bias, double eps, bool cudnn);

  /// One without weights has its running mean instead.
  static at::Tensor batch_norm(at::Tensor const& input, Optional weight, Optional bias,
                               Optional mean, Optional variance, bool training, double momentum,
                               double eps, bool cudnn);

  template <class Function>
  static void add(char const* name, char const* overload, Function* kernel) {
    // The handle would deregister the kernel; kernels stay for the rest of the process.
    static_cast<void>(new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerImpl(
        {name, overload}, interception_key,
        c10::KernelFunction::makeFromUnboxedRuntimeFunction(kernel), std::nullopt, nullptr,
        "frugal")));
  }
};

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

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/interception.ipp>
#endif
