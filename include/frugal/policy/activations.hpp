// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>

#include <concepts>
#include <cstring>
#include <type_traits>
#include <typeinfo>

#include <frugal/compose/about.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/loop/kinds.hpp>
#include <frugal/loop/phase.hpp>
#include <frugal/policy/activations/packing.hpp>

namespace frugal {

/// Saved tensors of float32 wait for backward as BF16.
struct Half {};
/// Saved tensors wait for backward in the host's memory.
struct Offload {};

namespace detail {

template <class Format>
struct PackedAs;

template <>
struct PackedAs<Half> {
  static bool takes(at::Tensor const& tensor) {
    return tensor.scalar_type() == at::kFloat && !logarithms(tensor);
  }
  static at::Tensor pack(at::Tensor const& elements) {
    return at::empty(elements.sizes(), elements.options().dtype(at::kBFloat16)).copy_(elements);
  }
  static at::Tensor unpack(at::Tensor const& packed, at::TensorOptions const& as) {
    return packed.to(as.dtype().toScalarType());
  }

 private:
  /// Backward takes their exponential, which would make the rounding of -10 an error of 3%.
  static bool logarithms(at::Tensor const& tensor) {
    torch::autograd::Node const& from = *tensor.grad_fn();
    return std::strstr(typeid(from).name(), "LogSoftmax") != nullptr;
  }
};

template <>
struct PackedAs<Offload> {
  static bool takes(at::Tensor const& tensor) { return tensor.is_floating_point(); }
  static at::Tensor pack(at::Tensor const& elements) {
    bool const pinned = elements.is_cuda();
    auto const options = elements.options().device(at::kCPU).pinned_memory(pinned);
    return at::empty(elements.sizes(), options).copy_(elements, /*non_blocking=*/pinned);
  }
  static at::Tensor unpack(at::Tensor const& packed, at::TensorOptions const& as) {
    return packed.to(as.device(), /*non_blocking=*/true);
  }
};

}  // namespace detail

/// Keeps what operators save for backward in half the memory, or in the host's.
///
/// Lever   hours per run: a batch or a model that memory would not hold.
/// Cost    Half: two conversions of each saved tensor. Offload: two transfers of each. No host
///         sync.
/// State   none. With Half gradients differ by the rounding of activations to 8 bits; with
///         Offload they do not.
/// Errors  SettingsError where somebody else's autograd engine is installed.
/// Source  torch.autograd.graph.saved_tensors_hooks and save_on_cpu; Half after Chakrabarti and
///         Moseley, "Backprop with approximate activations" (2019).
template <class Format>
struct Activations {
  static_assert(std::same_as<Format, Half> || std::same_as<Format, Offload>,
                "frugal: activations are kept as Half or by Offload. Write Activations<Half> or "
                "Activations<Offload>.");
  FRUGAL_SENTENCE(
      half_and_audit,
      "frugal: Activations<Half> rounds what gradients are computed from, and a "
      "bit-exact audit would find it. Take Activations<Half> or the audit out, or write "
      "Recompute<>, which rounds nothing.");

  using kind = kinds::activations;
  using listens = list<on::fit_begin, around::forward>;
  using conflicts = std::conditional_t<std::same_as<Format, Half>,
                                       list<conflict<kinds::audit, half_and_audit>>, list<>>;

  static constexpr About about{Term::hours_per_run, std::same_as<Format, Half>
                                                        ? "two conversions of each saved tensor"
                                                        : "two transfers of each saved tensor"};
  // The host's memory that Offload takes cannot be taken within a capture.
  static constexpr bool capturable = std::same_as<Format, Half>;

  template <class Context>
  class State {
    static constexpr bool offloads = std::same_as<Format, Offload>;

   public:
    explicit State(Activations const&) {}

    void on_fit_begin(FitBegin<Context>& phase) {
      if (offloads && phase.settings().device.is_cpu()) {
        phase.advise(
            "Activations<Offload> does nothing on the CPU, whose memory is the host's; "
            "Activations<Half> and Recompute<> save memory there");
      }
    }

    template <class Next>
    Loss around_forward(Forward<Context> const& phase, Next&& next) {
      bool const in_place = offloads && phase.device().is_cpu();
      if (!phase.training || !at::GradMode::is_enabled() || in_place) return next();
      detail::Packing<detail::PackedAs<Format>> packing;
      detail::SavedTensorsScope const scope(&packing);
      return next();
    }
  };
};

}  // namespace frugal
