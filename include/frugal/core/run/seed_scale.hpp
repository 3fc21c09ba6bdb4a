// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace frugal::detail {

/// What loss scaling will multiply the seed of the backward pass by, known during the forward pass: for an
/// objective that computes gradients together with the loss (LossGradients).
class [[nodiscard]] SeedScale {
 public:
  explicit SeedScale(at::Tensor const& scale) : before_(std::exchange(now(), &scale)) {}
  SeedScale(SeedScale const&) = delete;
  SeedScale& operator=(SeedScale const&) = delete;
  ~SeedScale() { now() = before_; }

  /// That of the innermost scope of this thread, one number in float; null without one.
  static at::Tensor const* current() { return now(); }

 private:
  static at::Tensor const*& now() {
    thread_local at::Tensor const* scale = nullptr;
    return scale;
  }

  at::Tensor const* before_;
};

}  // namespace frugal::detail
