// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/precision/int8.hpp>

#include <frugal/inline.hpp>
#include <frugal/policy/precision/int8_kernels.hpp>

#include <algorithm>
#include <cstddef>

namespace frugal::detail {

FRUGAL_INLINE bool Int8Format::takes(at::Tensor const& input, at::Tensor const& weight) {
  std::int64_t const rows = input.numel() / input.size(-1);
  if (std::max({rows, weight.size(0), weight.size(1)}) > most_terms) return false;
  bool const fits_cublas = std::min(rows, weight.size(0)) > 16 && rows % multiple == 0;
  return input.is_cpu() || (input.is_cuda() && fits_cublas);
}

FRUGAL_INLINE Quantized Int8Format::rows(at::Tensor const& matrix) {
  if (!matrix.is_cpu()) return by_operators(matrix, 1);
  Quantized made = make(matrix, matrix.size(0));
  std::int64_t const columns = matrix.size(1);
  float const* const in = matrix.const_data_ptr<float>();
  auto* const out = made.values.data_ptr<std::int8_t>();
  auto* const scales = made.scales.data_ptr<float>();
  at::parallel_for(0, matrix.size(0), grain / columns + 1, [&](auto begin, auto end) {
    run_widest<QuantizeRows>(in + begin * columns, end - begin, columns, out + begin * columns,
                             scales + begin);
  });
  return made;
}

FRUGAL_INLINE Quantized Int8Format::columns(at::Tensor const& matrix) {
  if (!matrix.is_cpu()) return by_operators(matrix, 0);
  std::int64_t const columns = matrix.size(1);
  Quantized made = make(matrix, columns);
  at::Tensor const work = at::empty_like(made.scales);
  float const* const in = matrix.const_data_ptr<float>();
  auto* const out = made.values.data_ptr<std::int8_t>();
  auto* const scales = made.scales.data_ptr<float>();
  auto* const inverses = work.data_ptr<float>();
  // Threads take whole registers of columns.
  std::int64_t const parts = (columns + int8_lanes - 1) / int8_lanes;
  at::parallel_for(0, parts, grain / (matrix.size(0) * int8_lanes) + 1, [&](auto begin, auto end) {
    std::int64_t const from = begin * int8_lanes;
    std::int64_t const width = std::min(end * int8_lanes, columns) - from;
    run_widest<QuantizeColumns>(in + from, matrix.size(0), columns, width, out + from,
                                scales + from, inverses + from);
  });
  return made;
}

FRUGAL_INLINE Quantized Int8Format::on_grid(at::Tensor const& matrix, double scale,
                                            std::int64_t zero_point, std::int64_t shift) {
  auto const size = static_cast<float>(scale);
  if (!matrix.is_cpu()) {
    at::Tensor const steps = matrix.mul(1 / size).round_().add_(zero_point).clamp_(0, 255);
    // NaN keeps its place in the scale.
    at::Tensor const scales = matrix.amax(1).mul_(0).add_(size);
    return {steps.add_(shift).to(at::kInt).to(at::kChar), scales};
  }
  Quantized made = make(matrix, matrix.size(0));
  made.scales.fill_(size);
  std::int64_t const columns = matrix.size(1);
  float const* const in = matrix.const_data_ptr<float>();
  auto* const out = made.values.data_ptr<std::int8_t>();
  auto* const scales = made.scales.data_ptr<float>();
  auto const zero = static_cast<float>(zero_point);
  auto const added = static_cast<std::int32_t>(shift + zero_point);
  at::parallel_for(0, matrix.size(0), grain / columns + 1, [&](auto begin, auto end) {
    run_widest<QuantizeOnGrid>(in + begin * columns, end - begin, columns, 1 / size, zero, added,
                               out + begin * columns, scales + begin);
  });
  return made;
}

FRUGAL_INLINE at::Tensor Int8Format::multiply(Quantized const& a, Quantized const& b,
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

FRUGAL_INLINE void Int8Format::multiply_into(at::Tensor const& product, Quantized const& a,
                                             Quantized const& b, Offsets const& offsets) {
  std::int64_t const columns = product.size(1);
  at::Tensor integers = product.view(at::kInt);
  static bool const has_dot_products = cpu_has_int8();
  // With a dimension of one, LibTorch 2.11's kernel reads the other strides of that factor wrongly on some
  // processors, and its numbers mean nothing.
  bool const is_matrix = std::min({a.values.size(0), a.values.size(1), b.values.size(1)}) > 1;
  if (has_dot_products && is_matrix) {
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

FRUGAL_INLINE void Int8Format::multiply_in_parts(at::Tensor const& integers, at::Tensor const& a_MK,
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

FRUGAL_INLINE Quantized Int8Format::make(at::Tensor const& matrix, std::int64_t scales) {
  return {at::empty(matrix.sizes(), matrix.options().dtype(at::kChar)),
          at::empty({scales}, matrix.options())};
}

FRUGAL_INLINE Quantized Int8Format::by_operators(at::Tensor const& matrix, std::int64_t along) {
  at::Tensor const scales = matrix.abs().amax(along, /*keepdim=*/true).div_(127);
  at::Tensor const values =
      matrix.mul(scales.clamp_min(1e-12).reciprocal_()).round_().to(at::kChar);
  return {values, scales.reshape({-1})};
}

}  // namespace frugal::detail
