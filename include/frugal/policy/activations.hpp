// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>

#include <concepts>
#include <cstring>
#include <memory>
#include <type_traits>
#include <typeinfo>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/offload.hpp>
#include <frugal/core/libtorch/packing.hpp>
#include <frugal/core/libtorch/staging.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/policy/formats.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Saved tensors wait for backward in host memory.
struct Offload {};

namespace detail {

/// Storage of saved tensors for Activations<BF16> and Activations<FP16>.
template <class Format>
struct AsHalf {
  struct Packed {
    at::Tensor data;
  };

  static bool takes(at::Tensor const& tensor) {
    return tensor.scalar_type() == at::kFloat && !logarithms(tensor);
  }
  static std::shared_ptr<Packed> pack(at::Tensor const& elements) {
    auto const options = elements.options().dtype(scalar_type_of<Format>);
    return std::make_shared<Packed>(Packed{at::empty(elements.sizes(), options).copy_(elements)});
  }
  static at::Tensor unpack(std::shared_ptr<Packed> const& packed, at::TensorOptions const& as) {
    return packed->data.to(as.dtype().toScalarType());
  }

 private:
  /// Whether a tensor holds logarithms. Backward exponentiates them, which would turn the rounding
  /// of -10 into an error of 3%.
  static bool logarithms(at::Tensor const& tensor) {
    torch::autograd::Node const& from = *tensor.grad_fn();
    return std::strstr(typeid(from).name(), "LogSoftmax") != nullptr;
  }
};

template <class Format>
struct packed_as {
  using type = AsHalf<Format>;
};
template <>
struct packed_as<Offload> {
  using type = ToHost;
};
template <class Format>
using PackedAs = typename packed_as<Format>::type;

}  // namespace detail

/// Keeps the tensors that operators save for backward in half the memory, or in host memory.
///
/// Lever   memory: a batch or a model that would not fit into memory.
/// Cost    BF16, FP16: two conversions of each saved tensor. Offload: two transfers of each tensor
///         of at least 256 KiB, on a side stream that overlaps with compute. No host sync.
/// State   none. With BF16, gradients differ by the rounding of activations to 8 bits; with FP16 by
///         that to 11 bits, and an activation beyond 65504 becomes infinite. With Offload they are
///         identical.
/// Errors  SettingsError if another custom autograd engine is installed.
/// Source  torch.autograd.graph.saved_tensors_hooks and save_on_cpu; 16 bits after Chakrabarti and
///         Moseley, "Backprop with approximate activations" (2019).
template <class Format>
struct Activations {
  static_assert(detail::is_half_format<Format> || std::same_as<Format, Offload>,
                "frugal: Activations<...>: unknown format. Options: BF16, FP16, Offload.");
  FRUGAL_DIAGNOSTIC(
      half_and_audit,
      "frugal: Activations<BF16> and Activations<FP16> round the values from which "
      "gradients are computed, which Audit<BitExact> rules out. Remove Activations or "
      "Audit, or use Recompute<>, which rounds nothing.");

  using kind = kinds::activations;
  using listens = list<on::fit_begin, around::forward>;
  using conflicts = std::conditional_t<detail::is_half_format<Format>,
                                       list<conflict<kinds::audit, half_and_audit>>, list<>>;

  static constexpr About about{Term::memory, detail::is_half_format<Format>
                                                 ? "two conversions of each saved tensor"
                                                 : "two transfers of each saved tensor"};
  // Offload allocates host memory, which is impossible within a capture.
  using properties = std::conditional_t<detail::is_half_format<Format>,
                                        list<property::capturable, property::works_in_layers>,
                                        list<property::works_in_layers>>;

  class State {
    static constexpr bool offloads = std::same_as<Format, Offload>;

   public:
    using transient = void;
    explicit State(Activations const&) {}

    void on_fit_begin(FitBegin& phase) {
      if (offloads && phase.settings().device.is_cpu()) {
        phase.warn(
            "Activations<Offload> does nothing on the CPU, whose memory is the host's; "
            "Activations<BF16> and Recompute<> save memory there");
      }
    }

    template <class Next>
    Loss around_forward(Forward const& phase, Next&& next) {
      bool const in_place = offloads && phase.device().is_cpu();
      if (!phase.training || !at::GradMode::is_enabled() || in_place) return next();
      detail::Packing<detail::PackedAs<Format>> packing(format(phase.device()));
      detail::SavedTensorsScope const scope(&packing);
      return next();
    }

   private:
    detail::PackedAs<Format> format(c10::Device device) {
      if constexpr (offloads) {
        if (!detail::overlaps_copies(device)) return {};
        // Start may have moved the run to the device a moment ago.
        if (!stream_) stream_ = std::make_shared<detail::OffloadStream>(device);
        return detail::ToHost(stream_);
      } else {
        return {};
      }
    }

    std::shared_ptr<detail::OffloadStream> stream_;
  };
};

}  // namespace frugal
