// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <functional>
#include <string>
#include <utility>

#include <frugal/model/structured/axis_values.hpp>

namespace frugal::detail {

using AxisRule = void (*)(AxisValues&, OperatorCall const&);

/// Null if the operator has none.
AxisRule axis_rule_of(std::string const& name);

/// Follows the axes of parameters through one forward pass, operator by operator.
///
/// An operator with a rule is looked at as a whole, whatever it is made of; one without is looked
/// into, if it is composite. The axes of any other are locked, so that they keep their size.
class AxisTrace : public AxisValues {
 public:
  using AxisValues::AxisValues;

  /// Traces what `forward` does in this thread. Its result is what the caller sees: it stays.
  void run(std::function<at::Tensor()> const& forward);

 private:
  // LibTorch leaves this key to others, and so does frugal's interception: it lies above that.
  static constexpr c10::DispatchKey key = c10::DispatchKey::TESTING_ONLY_GenericMode;

  class At {
   public:
    explicit At(AxisTrace& trace) : before_(std::exchange(active(), &trace)) {}
    At(At const&) = delete;
    At& operator=(At const&) = delete;
    ~At() { active() = before_; }

   private:
    AxisTrace* before_;
    c10::impl::IncludeDispatchKeyGuard include_{key};
  };
  static AxisTrace*& active() {
    thread_local AxisTrace* trace = nullptr;
    return trace;
  }

  static void register_fallback();

  static void follow(c10::OperatorHandle const& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack);
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/structured/trace.ipp>
#endif
