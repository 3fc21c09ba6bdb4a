// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace frugal {

/// A callable that somebody else keeps, as std::function_ref of C++26: a parameter of a function that is compiled
/// once for all callables. It must not outlive what it refers to.
template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef> &&
             std::is_invocable_r_v<Result, F&, Args...>)
  // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
  FunctionRef(F&& callable) noexcept
      : callable_(const_cast<void*>(static_cast<void const*>(std::addressof(callable)))),
        call_(&call<std::remove_reference_t<F>>) {}

  Result operator()(Args... args) const { return call_(callable_, std::forward<Args>(args)...); }

 private:
  template <class F>
  static Result call(void* callable, Args... args) {
    return (*static_cast<F*>(callable))(std::forward<Args>(args)...);
  }

  void* callable_;
  Result (*call_)(void*, Args...);
};

}  // namespace frugal
