// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

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

struct INT8 {
  static constexpr char const* name = "INT8";
};

namespace detail {

/// INT8 products with a scale for each row of the first factor and each column of the second: the
/// largest magnitude is 127. As quantize_int8_rowwise of torchao.
struct Int8Format {
  static constexpr char const* name = INT8::name;
  static constexpr std::int64_t multiple = 8;

  /// As many products of two bytes always fit into 32 bits.
  static constexpr std::int64_t most_terms = 0x7fffffff / (128 * 127);

  /// As many products of two bytes never exceed 2^24, up to which FP32 has every integer.
  static constexpr std::int64_t most_terms_in_fp32 = (1 << 24) / (128 * 128);

  /// Whether all three sums fit. cuBLAS has kernels from 17 rows on, of the output as well as of
  /// the weight's gradient.
  static bool takes(at::Tensor const& input, at::Tensor const& weight);

  static Quantized rows(at::Tensor const& matrix);

  static Quantized columns(at::Tensor const& matrix);

  static Quantized gradient_rows(at::Tensor const& matrix) { return rows(matrix); }
  static Quantized gradient_columns(at::Tensor const& matrix) { return columns(matrix); }

  /// Inputs with a scale known beforehand: clipped to 256 steps of which `zero_point` is 0.
  static Quantized on_grid(at::Tensor const& matrix, double scale, std::int64_t zero_point,
                           std::int64_t shift);

  /// What is subtracted from the integers of each row, or of each column.
  struct Offsets {
    at::Tensor rows{}, columns{};
  };

  static at::Tensor multiply(Quantized const& a, Quantized const& b, at::IntArrayRef sizes);

  /// In host memory, to a contiguous matrix. The integers become numbers in place: new memory costs
  /// more than the passes over it.
  static void multiply_into(at::Tensor const& product, Quantized const& a, Quantized const& b,
                            Offsets const& offsets);

  /// The integers of `_int_mm`, by products in FP32 of so few terms that each sum is exact. On a CPU
  /// without INT8 dot products LibTorch's `_int_mm` is a plain loop, which takes some 20 times as long.
  static void multiply_in_parts(at::Tensor const& integers, at::Tensor const& a_MK,
                                at::Tensor const& b_KN);

 private:
  static constexpr std::int64_t grain = 1 << 16;  ///< numbers that are worth a thread

  static Quantized make(at::Tensor const& matrix, std::int64_t scales);

  static Quantized by_operators(at::Tensor const& matrix, std::int64_t along);
};

}  // namespace detail

/// Computes linear layers in INT8, forward and backward, with scales that follow the numbers of
/// each row; all else in FP32, weights, gradients and the optimizer's state included.
///
/// Lever   hours per run: processors with INT8 dot products (VNNI) multiply INT8 about four times
///         as fast as FP32. Slower on the one GPU that has run it. The inputs of these layers are kept for
///         backward in INT8, a quarter of FP32's memory.
/// Cost    per layer and pass one reading of weight, input and gradient to quantize each. No host
///         sync.
/// State   none.
/// Errors  a second derivative of a layer is a ModuleError; a note in Report::warnings on a CPU
///         without such instructions, on a GPU, and for a module without a layer that it computes.
/// Source  torchao's int8_mixed_precision_training; Wortsman et al., "Stable and low-precision
///         training for large-scale vision-language models" (2023).
template <>
struct Precision<INT8> {
  using kind = kinds::precision;
  using listens = list<on::fit_begin, around::forward>;

  static constexpr About about{Term::hours_per_run, "quantizing weights, inputs and gradients"};
  using properties = list<property::capturable, property::works_in_layers>;

  static std::string caution(bool on_gpu) {
    if (!on_gpu) return detail::int8_caution(detail::cpu_has_int8(), detail::cpu_has_bf16());
    return "Precision<INT8> took 1.8 times as long as FP32 on the one GPU that has run it, and did "
           "not train a large transformer there (docs/gpu.md); use Precision<BF16>, or compare "
           "losses and times with it";
  }

  static std::string_view format() { return INT8::name; }

  class State {
    using Format = detail::Int8Format;

   public:
    using transient = void;  // it only holds the layers

    explicit State(Precision const&) {}

    void on_fit_begin(FitBegin& phase) {
      layers_.emplace(std::type_identity<Format>{}, base_module(phase.module()));
      if (layers_->empty()) phase.warn(detail::no_scaled_layers(Format::name, Format::multiple));
      detail::warn_on_device(phase, caution);
    }

    template <class Next>
    Loss around_forward(Forward const&, Next&& next) {
      auto const acting = layers_->act();
      return next();
    }

   private:
    std::optional<detail::ScaledLayers> layers_;
  };
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/precision/int8.ipp>
#endif
