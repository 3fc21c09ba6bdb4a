// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/autocast_mode.h>

#include <optional>

namespace frugal::detail {

/// Enables autocast to a type for a scope, or disables it without one: the counterpart of
/// `with torch.autocast(...)`.
class [[nodiscard]] AutocastGuard {
 public:
  AutocastGuard(at::DeviceType device, std::optional<at::ScalarType> type)
      : device_(device),
        enabled_(at::autocast::is_autocast_enabled(device)),
        type_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device_, type.has_value());
    if (type) at::autocast::set_autocast_dtype(device_, *type);
    at::autocast::increment_nesting();
  }
  AutocastGuard(AutocastGuard const&) = delete;
  AutocastGuard& operator=(AutocastGuard const&) = delete;
  ~AutocastGuard() {
    // Weights change between steps, so their cached casts must not outlive the scope.
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, enabled_);
    at::autocast::set_autocast_dtype(device_, type_);
  }

 private:
  at::DeviceType device_;
  bool enabled_;
  at::ScalarType type_;
};

}  // namespace frugal::detail
