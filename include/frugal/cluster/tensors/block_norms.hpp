// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <frugal/core/run/run.hpp>
#include <frugal/core/state/tensor_part.hpp>

namespace frugal::detail {

/// The norms of gradients, block by block of each parameter's elements. A block is in one process's
/// part, so their number and their bits do not depend on how the parameters are cut into parts.
class BlockNorms {
 public:
  static constexpr std::int64_t block = 4096;  ///< elements

  /// One number for each block of all parameters, those without a gradient included: in host memory
  /// doubles, on a device floats. `parts`: of which parameters `updated` are parts; null: they are
  /// whole. Then the numbers are those of this process, and 0 for the others.
  static at::Tensor of(Parameters const& updated, ParameterParts const* parts) {
    at::NoGradGuard const no_gradients;
    std::vector<std::int64_t> begins;
    std::int64_t all = 0;
    at::Tensor first;
    for (std::size_t i = 0; i < updated.size(); ++i) {
      at::Tensor const& each = updated.tensors[i];
      bool const is_part = parts != nullptr && parts->of[i];
      begins.push_back(all + (is_part ? parts->of[i]->first / block : 0));
      all += blocks_of(is_part ? parts->of[i]->whole_count() : each.numel());
      if (!first.defined() && each.grad().defined()) first = each.grad();
    }
    bool const on_host = !first.defined() || first.is_cpu();
    at::Tensor norms =
        at::zeros({all}, at::TensorOptions(on_host ? at::kDouble : at::kFloat)
                             .device(on_host ? c10::Device(at::kCPU) : first.device()));
    for (std::size_t i = 0; i < updated.size(); ++i) {
      at::Tensor const& gradient = updated.tensors[i].grad();
      if (!gradient.defined() || gradient.numel() == 0) continue;
      write(laid_out_as(gradient, updated.tensors[i]), norms, begins[i], on_host);
    }
    return norms;
  }

 private:
  static std::int64_t blocks_of(std::int64_t elements) { return (elements + block - 1) / block; }

  /// The elements in the order of the parameter's memory.
  static at::Tensor laid_out_as(at::Tensor const& gradient, at::Tensor const& parameter) {
    if (gradient.strides() == parameter.strides() && gradient.is_non_overlapping_and_dense()) {
      return in_memory_order(gradient);
    }
    return in_memory_order(
        at::empty_like(parameter, gradient.options(), at::MemoryFormat::Preserve).copy_(gradient));
  }

  static void write(at::Tensor const& elements, at::Tensor const& norms, std::int64_t begin,
                    bool on_host) {
    std::int64_t const rows = elements.numel() / block;
    std::int64_t const rest = elements.numel() - rows * block;
    auto const put = [&](std::int64_t at, std::int64_t count, at::Tensor const& of) {
      at::Tensor values = norm_of_rows(of, at::kFloat);
      // The squares of finite numbers may overflow.
      if (on_host && !values.isfinite().all().item<bool>()) values = norm_of_rows(of, at::kDouble);
      norms.narrow(0, at, count).copy_(values);
    };
    if (rows != 0) put(begin, rows, elements.narrow(0, 0, rows * block).view({rows, block}));
    if (rest != 0) put(begin + rows, 1, elements.narrow(0, rows * block, rest).view({1, rest}));
  }
  static at::Tensor norm_of_rows(at::Tensor const& rows, at::ScalarType at_least) {
    if (!rows.is_cpu()) return norm_by_halves(rows);
    return at::linalg_vector_norm(rows, 2, at::IntArrayRef({1}), false,
                                  at::promote_types(rows.scalar_type(), at_least));
  }
  /// A GPU's reduction adds in an order that depends on the number of rows, and so on the parts. Sums
  /// of halves do not.
  static at::Tensor norm_by_halves(at::Tensor const& rows) {
    at::Tensor squares = rows.to(at::promote_types(rows.scalar_type(), at::kFloat)).square();
    squares = at::constant_pad_nd(squares, {0, block - rows.size(1)});
    for (std::int64_t half = block / 2; half != 0; half /= 2) {
      squares = squares.narrow(1, 0, half) + squares.narrow(1, half, half);
    }
    return squares.flatten().sqrt();
  }
};

}  // namespace frugal::detail
