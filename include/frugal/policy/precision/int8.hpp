// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/precision/fp32.hpp>
#include <frugal/policy/precision/hardware.hpp>
#include <frugal/policy/precision/int8_kernels.hpp>
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
  FRUGAL_INLINE static bool takes(at::Tensor const& input, at::Tensor const& weight) {
    std::int64_t const rows = input.numel() / input.size(-1);
    if (std::max({rows, weight.size(0), weight.size(1)}) > most_terms) return false;
    bool const fits_cublas = std::min(rows, weight.size(0)) > 16 && rows % multiple == 0;
    return input.is_cpu() || (input.is_cuda() && fits_cublas);
  }

  FRUGAL_INLINE static Quantised rows(at::Tensor const& matrix) {
    if (!matrix.is_cpu()) return by_operators(matrix, 1);
    Quantised made = make(matrix, matrix.size(0));
    std::int64_t const columns = matrix.size(1);
    float const* const in = matrix.const_data_ptr<float>();
    auto* const out = made.values.data_ptr<std::int8_t>();
    auto* const scales = made.scales.data_ptr<float>();
    at::parallel_for(0, matrix.size(0), grain / columns + 1, [&](auto begin, auto end) {
      run_widest<QuantiseRows>(in + begin * columns, end - begin, columns, out + begin * columns,
                               scales + begin);
    });
    return made;
  }

  FRUGAL_INLINE static Quantised columns(at::Tensor const& matrix) {
    if (!matrix.is_cpu()) return by_operators(matrix, 0);
    std::int64_t const columns = matrix.size(1);
    Quantised made = make(matrix, columns);
    at::Tensor const work = at::empty_like(made.scales);
    float const* const in = matrix.const_data_ptr<float>();
    auto* const out = made.values.data_ptr<std::int8_t>();
    auto* const scales = made.scales.data_ptr<float>();
    auto* const inverses = work.data_ptr<float>();
    // Threads take whole registers of columns.
    std::int64_t const parts = (columns + int8_lanes - 1) / int8_lanes;
    at::parallel_for(0, parts, grain / (matrix.size(0) * int8_lanes) + 1,
                     [&](auto begin, auto end) {
                       std::int64_t const from = begin * int8_lanes;
                       std::int64_t const width = std::min(end * int8_lanes, columns) - from;
                       run_widest<QuantiseColumns>(in + from, matrix.size(0), columns, width,
                                                   out + from, scales + from, inverses + from);
                     });
    return made;
  }

  static Quantised gradient_rows(at::Tensor const& matrix) { return rows(matrix); }
  static Quantised gradient_columns(at::Tensor const& matrix) { return columns(matrix); }

  /// Inputs with a scale known beforehand: clipped to 256 steps of which `zero_point` is 0.
  FRUGAL_INLINE static Quantised on_grid(at::Tensor const& matrix, double scale,
                                         std::int64_t zero_point, std::int64_t shift) {
    auto const size = static_cast<float>(scale);
    if (!matrix.is_cpu()) {
      at::Tensor const steps = matrix.mul(1 / size).round_().add_(zero_point).clamp_(0, 255);
      // NaN keeps its place in the scale.
      at::Tensor const scales = matrix.amax(1).mul_(0).add_(size);
      return {steps.add_(shift).to(at::kInt).to(at::kChar), scales};
    }
    Quantised made = make(matrix, matrix.size(0));
    made.scales.fill_(size);
    std::int64_t const columns = matrix.size(1);
    float const* const in = matrix.const_data_ptr<float>();
    auto* const out = made.values.data_ptr<std::int8_t>();
    auto* const scales = made.scales.data_ptr<float>();
    auto const zero = static_cast<float>(zero_point);
    auto const added = static_cast<std::int32_t>(shift + zero_point);
    at::parallel_for(0, matrix.size(0), grain / columns + 1, [&](auto begin, auto end) {
      run_widest<QuantiseOnGrid>(in + begin * columns, end - begin, columns, 1 / size, zero, added,
                                 out + begin * columns, scales + begin);
    });
    return made;
  }

  /// What is subtracted from the integers of each row, or of each column.
  struct Offsets {
    at::Tensor rows{}, columns{};
  };

  FRUGAL_INLINE static at::Tensor multiply(Quantised const& a, Quantised const& b,
                                           at::IntArrayRef sizes) {
    if (a.values.is_cpu()) {
      at::Tensor product = at::empty(sizes, a.scales.options());
      multiply_into(product.view({a.values.size(0), b.values.size(1)}), a, b, {});
      return product;
    }
    // From Hopper on, cuBLAS takes the first factor by rows and the second by columns alone.
    at::Tensor const sums =
        at::_int_mm(a.values.contiguous(), b.values.t().contiguous().t()).to(at::kFloat);
    return at::_unsafe_view(sums.mul_(b.scales).mul_(a.scales.unsqueeze(1)), sizes);
  }

  /// In host memory, to a contiguous matrix. The integers become numbers in place: new memory costs
  /// more than the passes over it.
  FRUGAL_INLINE static void multiply_into(at::Tensor const& product, Quantised const& a,
                                          Quantised const& b, Offsets const& offsets) {
    std::int64_t const columns = product.size(1);
    at::Tensor integers = product.view(at::kInt);
    static bool const has_dot_products = cpu_has_int8();
    if (has_dot_products) {
      at::_int_mm_out(integers, a.values, b.values);
    } else {
      multiply_in_parts(integers, a.values, b.values);
    }
    auto* const at = static_cast<std::byte*>(integers.data_ptr());
    float const* const of_rows = a.scales.const_data_ptr<float>();
    float const* const of_columns = b.scales.const_data_ptr<float>();
    auto const of = [](at::Tensor const& each) {
      return each.defined() ? each.const_data_ptr<std::int32_t>() : nullptr;
    };
    auto const* const row_offsets = of(offsets.rows);
    auto const* const column_offsets = of(offsets.columns);
    at::parallel_for(0, product.size(0), grain / columns + 1, [&](auto begin, auto end) {
      run_widest<ScaleProduct>(
          at + begin * columns * std::int64_t{sizeof(float)}, end - begin, columns, of_rows + begin,
          of_columns, row_offsets == nullptr ? nullptr : row_offsets + begin, column_offsets);
    });
  }

  /// The integers of `_int_mm`, by products in FP32 of so few terms that each sum is exact. On a CPU
  /// without INT8 dot products LibTorch's `_int_mm` is a plain loop, which takes some 20 times as long.
  FRUGAL_INLINE static void multiply_in_parts(at::Tensor const& integers, at::Tensor const& a_MK,
                                              at::Tensor const& b_KN) {
    std::int64_t const terms = a_MK.size(1);
    for (std::int64_t from = 0; from < terms; from += most_terms_in_fp32) {
      std::int64_t const count = std::min(most_terms_in_fp32, terms - from);
      at::Tensor const sums = at::mm(a_MK.narrow(1, from, count).to(at::kFloat),
                                     b_KN.narrow(0, from, count).to(at::kFloat));
      if (from == 0) {
        integers.copy_(sums);
      } else {
        integers.add_(sums.to(at::kInt));
      }
    }
    if (terms == 0) integers.zero_();
  }

 private:
  static constexpr std::int64_t grain = 1 << 16;  ///< numbers that are worth a thread

  FRUGAL_INLINE static Quantised make(at::Tensor const& matrix, std::int64_t scales) {
    return {at::empty(matrix.sizes(), matrix.options().dtype(at::kChar)),
            at::empty({scales}, matrix.options())};
  }

  FRUGAL_INLINE static Quantised by_operators(at::Tensor const& matrix, std::int64_t along) {
    at::Tensor const scales = matrix.abs().amax(along, /*keepdim=*/true).div_(127);
    at::Tensor const values =
        matrix.mul(scales.clamp_min(1e-12).reciprocal_()).round_().to(at::kChar);
    return {values, scales.reshape({-1})};
  }
};

}  // namespace detail

/// Computes linear layers in INT8, forward and backward, with scales that follow the numbers of
/// each row; all else in FP32, weights, gradients and the optimizer's state included.
///
/// Lever   hours per run: processors with INT8 dot products (VNNI) multiply INT8 about four times
///         as fast as FP32. Slower on the one GPU that has run it. The inputs of these layers are kept for
///         backward in INT8, a quarter of FP32's memory.
/// Cost    per layer and pass one reading of weight, input and gradient to quantise each. No host
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

  static constexpr About about{Term::hours_per_run, "quantising weights, inputs and gradients"};
  static constexpr bool capturable = true;

  FRUGAL_INLINE static std::string caution() {
    return detail::int8_caution(detail::cpu_has_int8(), detail::cpu_has_bf16());
  }

  FRUGAL_INLINE static std::string gpu_caution() {
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
      c10::Device const device = phase.settings().device;
      if (device.is_cpu() && !caution().empty()) phase.warn(caution());
      if (device.is_cuda()) phase.warn(gpu_caution());
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
