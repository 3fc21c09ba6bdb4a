// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include <frugal/core/run/objective.hpp>

namespace frugal::detail {

/// Keeps the batches and the mean loss of a window, for optimizers that evaluate it several times.
/// Empty, with empty functions, for all other optimizers.
template <class Batch, bool Kept>
class KeptWindow {
 public:
  void open() { batches_.clear(), reopen(); }
  /// Begins the same batches again.
  void reopen() { sum_ = at::Tensor(); }

  void keep(Batch&& batch) { batches_.push_back(std::move(batch)); }
  void add(Loss const& loss) {
    at::Tensor const value = loss.value.detach();
    // A value of weight 0 is not read: it may be NaN.
    at::Tensor const part = *loss.weight == 0 ? at::zeros_like(value) : value * *loss.weight;
    sum_ = sum_.defined() ? sum_ + part : part;
  }

  std::vector<Batch> const& batches() const { return batches_; }
  at::Tensor mean(double weight) const { return sum_ / weight; }

 private:
  std::vector<Batch> batches_;
  at::Tensor sum_;
};

template <class Batch>
class KeptWindow<Batch, false> {
 public:
  void open() {}
  void reopen() {}
  void keep(Batch&&) {}
  void add(Loss const&) {}
};

}  // namespace frugal::detail
