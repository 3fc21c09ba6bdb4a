// SPDX-License-Identifier: Apache-2.0
// Shapes: M, K, N of products [M, K] x [K, N]; B batch, H heads, S positions, D width of a head; of
// a convolution input [B, C, ...], weight [C', C / groups, ...], where ... are spatial.
#pragma once

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <torch/csrc/profiler/util.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace frugal {

namespace detail {

using Shape = c10::IntArrayRef;

std::uint64_t elements(Shape shape);

/// 2 M K N, times the batch of a batched product: a multiply-add counts as two.
inline std::uint64_t product_flops(Shape a, Shape b) {
  return b.empty() ? 0 : 2 * elements(a) * static_cast<std::uint64_t>(b.back());
}

/// Each weight is applied at each position of the output, or of the input for a transposed
/// convolution.
std::uint64_t convolution_flops(Shape weight, Shape positions);

/// Scores of all pairs and their weighted sums of values; a causal mask is ignored.
std::uint64_t attention_flops(Shape q_BHSD, Shape k_BHSD, Shape v_BHSD, std::uint64_t of_d,
                              std::uint64_t of_v);

/// Input and output shapes of an operator call; empty for arguments that are not tensors.
struct CallShapes {
  std::vector<std::vector<std::int64_t>> inputs;
  std::vector<std::vector<std::int64_t>> outputs;

  Shape input(std::size_t at) const { return at < inputs.size() ? Shape(inputs[at]) : Shape(); }
  Shape output(std::size_t at) const { return at < outputs.size() ? Shape(outputs[at]) : Shape(); }
};

template <std::size_t First>
std::uint64_t of_product(CallShapes const& call) {
  return product_flops(call.input(First), call.input(First + 1));
}

/// The positions at which each weight is applied. The channels tell a transposed convolution from a
/// plain one; if both sides have equally many, it counts as transposed if it enlarges its input.
Shape positions(Shape input, Shape weight, Shape output);

/// (input, weight, ...) -> output
std::uint64_t of_convolution(CallShapes const& call);

/// (grad_output, input, weight, ...) -> the requested gradients of input, weight and bias: each of
/// the first two costs as much as forward.
std::uint64_t of_convolution_backward(CallShapes const& call);

/// (query, key, value, ...)
inline std::uint64_t of_attention(CallShapes const& call) {
  return attention_flops(call.input(0), call.input(1), call.input(2), 1, 1);
}

/// (grad, query, key, value, ...): recomputed scores, and four products.
inline std::uint64_t of_attention_backward(CallShapes const& call) {
  return attention_flops(call.input(1), call.input(2), call.input(3), 3, 2);
}

struct CountedOperator {
  std::string_view name;
  std::uint64_t (*flops)(CallShapes const&);
};

// Composite operators (linear, matmul, einsum) call these, so that each is counted once.
inline constexpr std::array counted_operators{
    CountedOperator{"aten::mm", of_product<0>},
    CountedOperator{"aten::addmm", of_product<1>},
    CountedOperator{"aten::bmm", of_product<0>},
    CountedOperator{"aten::baddbmm", of_product<1>},
    CountedOperator{"aten::_scaled_mm", of_product<0>},
    CountedOperator{"aten::_int_mm", of_product<0>},
    CountedOperator{"aten::convolution", of_convolution},
    CountedOperator{"aten::convolution_backward", of_convolution_backward},
    CountedOperator{"aten::_scaled_dot_product_flash_attention", of_attention},
    CountedOperator{"aten::_scaled_dot_product_flash_attention_for_cpu", of_attention},
    CountedOperator{"aten::_scaled_dot_product_efficient_attention", of_attention},
    CountedOperator{"aten::_scaled_dot_product_cudnn_attention", of_attention},
    CountedOperator{"aten::_scaled_dot_product_flash_attention_backward", of_attention_backward},
    CountedOperator{"aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                    of_attention_backward},
    CountedOperator{"aten::_scaled_dot_product_efficient_attention_backward",
                    of_attention_backward},
    CountedOperator{"aten::_scaled_dot_product_cudnn_attention_backward", of_attention_backward},
};

}  // namespace detail

/// Counts the floating-point operations of matrix products, convolutions and attention that a
/// thread submits, autograd's threads included. Follows torch.utils.flop_counter, except for the
/// backward pass of grouped convolutions, which that counts as if they had one group, and products
/// of INT8, which it leaves out.
///
/// Only one counter per process is active at a time: LibTorch's callbacks carry no data.
class [[nodiscard]] FlopCounter {
 public:
  FlopCounter() = default;
  FlopCounter(FlopCounter const&) = delete;
  FlopCounter& operator=(FlopCounter const&) = delete;
  ~FlopCounter() { close(); }

  /// Starts from 0. False while another counter is open: try again later.
  bool open();
  /// Counts this thread's operations until pause(), which must be called in the same thread.
  void count();
  void pause();
  /// The count since open().
  std::uint64_t close();

 private:
  /// A counted operator, between its call and its return.
  struct Call : at::ObserverContext {
    explicit Call(detail::CountedOperator const& known) : counted(known) {}
    detail::CountedOperator const& counted;
    detail::CallShapes shapes;
  };

  static std::unique_ptr<at::ObserverContext> begin(at::RecordFunction const& function);

  static void end(at::RecordFunction const& function, at::ObserverContext* context);

  static inline std::atomic<FlopCounter*> active_{nullptr};

  std::atomic<std::uint64_t> flops_{0};
  at::CallbackHandle handle_ = 0;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/throughput/flops.ipp>
#endif
