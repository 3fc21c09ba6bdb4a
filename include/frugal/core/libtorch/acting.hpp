// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <frugal/core/libtorch/interception.hpp>

namespace frugal::detail {

/// Whose layer hooks act in this thread, besides those of adapted modules. A precision belongs to a
/// recipe, and another recipe may use the same module. Recomputation restores it (Surroundings).
inline thread_local void const* acting = nullptr;

/// Whether this thread computes for the second time what it has computed before: hooks that follow
/// their inputs, such as moving ranges, stay as they are.
inline thread_local bool recomputing = false;

/// The hooks of this owner act in this thread for its lifetime.
class [[nodiscard]] Acting {
 public:
  explicit Acting(void const* owner) : before_(std::exchange(acting, owner)) { use_interception(); }
  Acting(Acting const&) = delete;
  Acting& operator=(Acting const&) = delete;
  ~Acting() { acting = before_; }

 private:
  void const* before_;
};

}  // namespace frugal::detail
