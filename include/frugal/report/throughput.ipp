// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/throughput.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::uint64_t elements(Shape shape) {
  std::uint64_t count = 1;
  for (std::int64_t const size : shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

FRUGAL_INLINE std::uint64_t convolution_flops(Shape weight, Shape positions) {
  if (positions.size() < 2) return 0;
  return 2 * elements(weight) * static_cast<std::uint64_t>(positions[0]) *
         elements(positions.slice(2));
}

FRUGAL_INLINE std::uint64_t attention_flops(Shape q_BHSD, Shape k_BHSD, Shape v_BHSD,
                                            std::uint64_t of_d, std::uint64_t of_v) {
  if (q_BHSD.size() != 4 || k_BHSD.size() != 4 || v_BHSD.size() != 4) return 0;
  auto const pairs = elements(q_BHSD.slice(0, 3)) * static_cast<std::uint64_t>(k_BHSD[2]);
  return 2 * pairs *
         (of_d * static_cast<std::uint64_t>(q_BHSD[3]) +
          of_v * static_cast<std::uint64_t>(v_BHSD[3]));
}

FRUGAL_INLINE Shape positions(Shape input, Shape weight, Shape output) {
  if (input.size() < 3 || input.size() != weight.size() || input.size() != output.size()) return {};
  bool const along = weight[0] == output[1];
  bool const transposed = weight[0] == input[1];
  if (along != transposed) return along ? output : input;
  return elements(output.slice(2)) > elements(input.slice(2)) ? input : output;
}

FRUGAL_INLINE std::uint64_t of_convolution(CallShapes const& call) {
  Shape const weight = call.input(1);
  return convolution_flops(weight, positions(call.input(0), weight, call.output(0)));
}

FRUGAL_INLINE std::uint64_t of_convolution_backward(CallShapes const& call) {
  Shape const weight = call.input(2);
  std::uint64_t const parts = std::uint64_t{!call.output(0).empty()} + !call.output(1).empty();
  return parts * convolution_flops(weight, positions(call.input(1), weight, call.input(0)));
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE bool FlopCounter::open() {
  FlopCounter* nobody = nullptr;
  if (!active_.compare_exchange_strong(nobody, this)) return nobody == this;
  flops_ = 0;
  return true;
}

FRUGAL_INLINE void FlopCounter::count() {
  if (handle_ != 0) return;
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&begin, &end)
                                           .needsInputs(true)
                                           .needsOutputs(true)
                                           .scopes({at::RecordScope::FUNCTION}));
}

FRUGAL_INLINE void FlopCounter::pause() {
  if (handle_ == 0) return;
  at::removeCallback(handle_);
  handle_ = 0;
}

FRUGAL_INLINE std::uint64_t FlopCounter::close() {
  pause();
  FlopCounter* self = this;
  active_.compare_exchange_strong(self, nullptr);
  return flops_;
}

FRUGAL_INLINE std::unique_ptr<at::ObserverContext> FlopCounter::begin(
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

FRUGAL_INLINE void FlopCounter::end(at::RecordFunction const& function,
                                    at::ObserverContext* context) {
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

}  // namespace frugal
