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

#include <frugal/inline.hpp>

namespace frugal {

namespace detail {

using Shape = c10::IntArrayRef;

FRUGAL_INLINE std::uint64_t elements(Shape shape) {
  std::uint64_t count = 1;
  for (std::int64_t const size : shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

/// 2 M K N, times the batch of a batched product: a multiply-add counts as two.
inline std::uint64_t product_flops(Shape a, Shape b) {
  return b.empty() ? 0 : 2 * elements(a) * static_cast<std::uint64_t>(b.back());
}

/// Each weight is applied at each position of the output, or of the input for a transposed
/// convolution.
FRUGAL_INLINE std::uint64_t convolution_flops(Shape weight, Shape positions) {
  if (positions.size() < 2) return 0;
  return 2 * elements(weight) * static_cast<std::uint64_t>(positions[0]) *
         elements(positions.slice(2));
}

/// Scores of all pairs and their weighted sums of values; a causal mask is ignored.
FRUGAL_INLINE std::uint64_t attention_flops(Shape q_BHSD, Shape k_BHSD, Shape v_BHSD,
                                            std::uint64_t of_d, std::uint64_t of_v) {
  if (q_BHSD.size() != 4 || k_BHSD.size() != 4 || v_BHSD.size() != 4) return 0;
  auto const pairs = elements(q_BHSD.slice(0, 3)) * static_cast<std::uint64_t>(k_BHSD[2]);
  return 2 * pairs *
         (of_d * static_cast<std::uint64_t>(q_BHSD[3]) +
          of_v * static_cast<std::uint64_t>(v_BHSD[3]));
}

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
FRUGAL_INLINE Shape positions(Shape input, Shape weight, Shape output) {
  if (input.size() < 3 || input.size() != weight.size() || input.size() != output.size()) return {};
  bool const along = weight[0] == output[1];
  bool const transposed = weight[0] == input[1];
  if (along != transposed) return along ? output : input;
  return elements(output.slice(2)) > elements(input.slice(2)) ? input : output;
}

/// (input, weight, ...) -> output
FRUGAL_INLINE std::uint64_t of_convolution(CallShapes const& call) {
  Shape const weight = call.input(1);
  return convolution_flops(weight, positions(call.input(0), weight, call.output(0)));
}

/// (grad_output, input, weight, ...) -> the requested gradients of input, weight and bias: each of
/// the first two costs as much as forward.
FRUGAL_INLINE std::uint64_t of_convolution_backward(CallShapes const& call) {
  Shape const weight = call.input(2);
  std::uint64_t const parts = std::uint64_t{!call.output(0).empty()} + !call.output(1).empty();
  return parts * convolution_flops(weight, positions(call.input(1), weight, call.input(0)));
}

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
  FRUGAL_INLINE bool open() {
    FlopCounter* nobody = nullptr;
    if (!active_.compare_exchange_strong(nobody, this)) return nobody == this;
    flops_ = 0;
    return true;
  }
  /// Counts this thread's operations until pause(), which must be called in the same thread.
  FRUGAL_INLINE void count() {
    if (handle_ != 0) return;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&begin, &end)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  }
  FRUGAL_INLINE void pause() {
    if (handle_ == 0) return;
    at::removeCallback(handle_);
    handle_ = 0;
  }
  /// The count since open().
  FRUGAL_INLINE std::uint64_t close() {
    pause();
    FlopCounter* self = this;
    active_.compare_exchange_strong(self, nullptr);
    return flops_;
  }

 private:
  /// A counted operator, between its call and its return.
  struct Call : at::ObserverContext {
    explicit Call(detail::CountedOperator const& known) : counted(known) {}
    detail::CountedOperator const& counted;
    detail::CallShapes shapes;
  };

  FRUGAL_INLINE static std::unique_ptr<at::ObserverContext> begin(
      at::RecordFunction const& function) {
    std::string_view const name = function.name();
    for (detail::CountedOperator const& known : detail::counted_operators) {
      if (known.name != name) continue;
      auto call = std::make_unique<Call>(known);
      // Not RecordFunction::inputs(): in a program without NDEBUG it asserts an invariant that a
      // LibTorch built with NDEBUG does not maintain.
      call->shapes.inputs = torch::profiler::impl::inputSizes(function);
      return call;
    }
    return nullptr;
  }

  FRUGAL_INLINE static void end(at::RecordFunction const& function, at::ObserverContext* context) {
    FlopCounter* const counter = active_.load();
    if (counter == nullptr || context == nullptr) return;
    auto& call = static_cast<Call&>(*context);
    for (c10::IValue const& value : function.outputs()) {
      bool const tensor = value.isTensor() && value.toTensor().defined();
      call.shapes.outputs.emplace_back();
      if (tensor) call.shapes.outputs.back() = value.toTensor().sizes().vec();
    }
    counter->flops_ += call.counted.flops(call.shapes);
  }

  static inline std::atomic<FlopCounter*> active_{nullptr};

  std::atomic<std::uint64_t> flops_{0};
  at::CallbackHandle handle_ = 0;
};

}  // namespace frugal
