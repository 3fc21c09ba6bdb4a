// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>

#include <concepts>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/recompute/frame.hpp>

namespace frugal {

namespace detail {

/// A module holder, or a pointer to a module.
template <class P>
concept ModulePointer = requires(P& pointer) {
  requires std::derived_from<std::remove_reference_t<decltype(*pointer)>, torch::nn::Module>;
};

template <class F, class... Inputs>
concept CalledAs =
    std::invocable<F&, Inputs...> ||
    (ModulePointer<F> && requires(F& f, Inputs... inputs) { (*f).forward(std::move(inputs)...); });

/// Calls a function, or the forward of a module.
template <class F, class... Inputs>
decltype(auto) call(F& f, Inputs&&... inputs) {
  if constexpr (std::invocable<F&, Inputs...>) {
    return std::invoke(f, std::forward<Inputs>(inputs)...);
  } else {
    return (*f).forward(std::forward<Inputs>(inputs)...);
  }
}

/// The buffers of the modules in a function, as far as its type exposes them.
template <class F>
std::vector<at::Tensor> buffers_in(F& f) {
  if constexpr (ModulePointer<F>) {
    return (*f).buffers();
  } else if constexpr (requires { f.module_buffers(); }) {
    return f.module_buffers();
  } else {
    return {};
  }
}

template <class F, class... Inputs>
class RecomputedCall final : public Frame {
  using Values = std::tuple<Inputs...>;

 public:
  RecomputedCall(F f, Values const& inputs)
      : f_(std::move(f)), inputs_(inputs), surroundings_(inputs_.devices()) {}

  auto first(Values& inputs) {
    auto result = record([&] { return call_with(Values(inputs)); });
    inputs_.require_unchanged(inputs, "a recomputed function");
    return result;
  }

 private:
  auto call_with(Values inputs) {
    return std::apply([&](Inputs&... each) { return call(f_, std::move(each)...); }, inputs);
  }

  void call_again() override {
    Values inputs = inputs_.restored();
    KeepBuffers const buffers(buffers_in(f_));
    Within const then(surroundings_);
    call_with(std::move(inputs));
  }

  F f_;
  KeptInputs<Values> inputs_;
  Surroundings surroundings_;
};

}  // namespace detail

/// Calls `f(inputs...)` without keeping its activations: backward calls it again to recompute them,
/// with the same generator states and autocast (activation checkpointing). Gradients equal those of
/// the plain call, bit for bit. With gradients disabled, this is the plain call.
///
/// f       a function of tensors, tuples, vectors and optionals of tensors, and other values, that
///         returns any of these; or a module holder. It is copied and called again during backward:
///         capture by value, or keep alive everything that it refers to.
/// Errors  ModuleError if f changes an input in place, or behaves differently the second time.
///         Exceptions of f leave forward or backward.
/// Source  Chen et al., "Training deep nets with sublinear memory cost" (2016); non-reentrant as in
///         torch.utils.checkpoint(use_reentrant=False).
template <class F, class... Inputs>
auto recompute(F f, Inputs... inputs) {
  static_assert(detail::CalledAs<F, Inputs...>,
                "frugal: the function given to recompute cannot be called with these inputs. Let "
                "it take them by value or by const&, in the order of the call.");
  if constexpr (detail::CalledAs<F, Inputs...>) {
    if (!at::GradMode::is_enabled()) return detail::call(f, std::move(inputs)...);
    std::tuple<Inputs...> values(std::move(inputs)...);
    auto const frame = std::make_shared<detail::RecomputedCall<F, Inputs...>>(std::move(f), values);
    return frame->first(values);
  }
}

}  // namespace frugal
