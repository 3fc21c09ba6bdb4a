// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/DispatchKey.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <atomic>

namespace frugal {

namespace detail {

/// LibTorch leaves this key to others. It is above autocast and autograd.
inline constexpr c10::DispatchKey interception_key = c10::DispatchKey::DeferredInit;

/// Whether a weight has ever been intercepted in this process.
inline std::atomic<bool> anything_intercepted = false;

}  // namespace detail

/// Turns interception (interception.hpp) on in this thread, for good, if anything is intercepted at
/// all: before that it does nothing, so call it after the module was adapted. For threads that call
/// an adapted module by themselves: trainers do it, and so does intercept().
inline void use_interception() {
  if (!detail::anything_intercepted) return;
  c10::impl::tls_set_dispatch_key_included(detail::interception_key, true);
}

}  // namespace frugal
