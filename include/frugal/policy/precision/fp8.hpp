// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/precision/fp32.hpp>
#include <frugal/policy/precision/hardware.hpp>
#include <frugal/policy/precision/scaled_linear.hpp>

namespace frugal {

struct FP8 {
  static constexpr char const* name = "FP8";
};

/// What shares a scale in FP8.
enum class Scales {
  per_tensor,  ///< a whole tensor; gradients in E5M2, which has the larger range
  per_row,     ///< a row of the first factor, a column of the second; all in E4M3
};

namespace detail {

/// FP8 products with dynamic scales, as torchao.float8's recipes "tensorwise" and "rowwise".
template <Scales scaled>
struct Fp8Format {
  static constexpr char const* name = FP8::name;
  static constexpr std::int64_t multiple = 16;
  static constexpr bool by_row = scaled == Scales::per_row;

  static bool takes(at::Tensor const& input, at::Tensor const&) {
    if (input.is_cpu()) return true;
    return input.is_cuda() && input.numel() / input.size(-1) % multiple == 0;
  }

  static Quantized rows(at::Tensor const& matrix) {
    return quantize(matrix, 1, at::kFloat8_e4m3fn);
  }
  static Quantized columns(at::Tensor const& matrix) {
    return quantize(matrix, 0, at::kFloat8_e4m3fn);
  }
  static Quantized gradient_rows(at::Tensor const& matrix) {
    return quantize(matrix, 1, of_gradient);
  }
  static Quantized gradient_columns(at::Tensor const& matrix) {
    return quantize(matrix, 0, of_gradient);
  }

  static at::Tensor multiply(Quantized const& a, Quantized const& b, at::IntArrayRef sizes) {
    // Kernels of GPUs take the first factor by rows and the second by columns. Those with a scale
    // for each row round the result to BF16, so rows are scaled afterwards.
    at::Tensor const one = by_row ? at::ones({}, a.scales.options()) : at::Tensor();
    at::Tensor product = at::_scaled_mm(a.values.contiguous(), b.values.t().contiguous().t(),
                                        by_row ? one : a.scales, by_row ? one : b.scales,
                                        /*bias=*/{}, /*scale_result=*/{}, at::kFloat);
    if (by_row) product.mul_(b.scales).mul_(a.scales);
    return at::_unsafe_view(product, sizes);
  }

 private:
  static constexpr at::ScalarType of_gradient = by_row ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;

  static Quantized quantize(at::Tensor const& matrix, std::int64_t along, at::ScalarType type) {
    double const largest = type == at::kFloat8_e5m2 ? 57344 : 448;
    at::Tensor const size = matrix.abs();
    at::Tensor const most = by_row ? size.amax(along, /*keepdim=*/true) : size.max();
    at::Tensor scale = most.to(at::kDouble).clamp_min_(1e-12).reciprocal_().mul_(largest);
    scale = scale.to(at::kFloat);
    if constexpr (by_row) scale = scale.log2_().floor_().exp2_();
    return {matrix.mul(scale).clamp_(-largest, largest).to(type), scale.reciprocal_()};
  }
};

}  // namespace detail

/// Computes linear layers in FP8, forward and backward, with dynamic scales; all else in FP32.
///
/// Lever   hours per run: GPUs from Ada and Hopper on multiply FP8 twice as fast as BF16. On a CPU
///         it computes the same values, slowly.
/// Cost    per layer and pass operators that quantize weight, input and gradient: on an H100 more
///         than it saves, in a transformer of width 2048. No host sync.
/// State   none.
/// Errors  SettingsError for a GPU without FP8; ModuleError for a second derivative of a layer;
///         notes in Report::warnings on a CPU, on a GPU, and for a module without a layer that it computes.
/// Source  Micikevicius et al., "FP8 formats for deep learning" (2022); torchao.float8.
template <>
struct Precision<FP8> {
  using kind = kinds::precision;
  using listens = list<on::fit_begin, around::forward>;

  static constexpr About about{Term::hours_per_run, "quantizing weights, inputs and gradients"};
  using properties = list<property::capturable, property::works_in_layers>;

  Scales scales = Scales::per_tensor;

  static std::string caution(bool on_gpu) {
    if (!on_gpu) {
      return "Precision<FP8> gains nothing on a CPU, where it computes what a GPU would; "
             "Precision<FP32> is faster on it";
    }
    return "Precision<FP8> took 1.4 times as long as FP32 on the one GPU that has run it "
           "(docs/gpu.md); use Precision<BF16>, or compare times with it";
  }

  static std::string_view format() { return FP8::name; }

  class State {
   public:
    using transient = void;  // it only holds the layers

    explicit State(Precision const& settings) : scales_(settings.scales) {}

    void on_fit_begin(FitBegin& phase) {
      c10::Device const device = phase.settings().device;
      detail::require_fp8(detail::capability_of(device));
      torch::nn::Module& module = base_module(phase.module());
      if (scales_ == Scales::per_row) {
        layers_.emplace(std::type_identity<detail::Fp8Format<Scales::per_row>>{}, module);
      } else {
        layers_.emplace(std::type_identity<detail::Fp8Format<Scales::per_tensor>>{}, module);
      }
      if (layers_->empty()) phase.warn(detail::no_scaled_layers(FP8::name, 16));
      detail::warn_on_device(phase, caution);
    }

    template <class Next>
    Loss around_forward(Forward const&, Next&& next) {
      auto const acting = layers_->act();
      return next();
    }

   private:
    Scales scales_;
    std::optional<detail::ScaledLayers> layers_;
  };
};

}  // namespace frugal
