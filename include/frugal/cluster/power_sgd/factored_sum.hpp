// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/power_sgd.hpp>
#include <frugal/cluster/power_sgd/memory.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>
#include <frugal/core/state/tensor_part.hpp>

namespace frugal::detail {

/// Matrices of gradients that are summed over processes as two factors, P and Q.
///
/// A process has the matrix X = mean gradient of its own + error. With an orthonormal Q, the same in
/// all:  P = sum of X Q, orthonormalised;  Q = mean of X' P;  the gradient is P Q', the error X - P Q'.
class FactoredSum {
 public:
  struct Matrix {
    std::size_t index = 0;  ///< of the parameter
    at::Tensor parameter{};
    LowRank shape{};
    at::Tensor place{};     ///< of its gradient, as the parameter
    at::Tensor gradient{};  ///< [rows, columns]: the memory of the place
  };

  FactoredSum(Communicator& all, PowerSGDSettings const& settings, PowerSGDMemory& memory)
      : all_(all), settings_(settings), memory_(memory) {}

  /// `matrices`: index, parameter and shape, in the order of the parameters.
  void lay_out(std::vector<Matrix> matrices) {
    matrices_ = std::move(matrices);
    if (matrices_.empty()) return;
    sort_as_torch();
    std::vector<at::Tensor> like;
    std::int64_t ps = 0, qs = 0;
    for (Matrix const& each : matrices_) {
      like.push_back(each.parameter);
      ps += each.shape.rows * each.shape.rank;
      qs += each.shape.columns * each.shape.rank;
      if (!settings_.error_feedback) memory_.of(each.parameter).error.reset();
    }
    flat_.emplace(like, 1);
    for (std::size_t k = 0; k < matrices_.size(); ++k) {
      matrices_[k].place = flat_->views()[k];
      matrices_[k].gradient = as_matrix(matrices_[k].place, matrices_[k].shape);
    }
    p_ = at::empty({ps}, flat_->flat().options());
    q_ = at::empty({qs}, flat_->flat().options());
  }
  std::vector<Matrix> const& matrices() const { return matrices_; }

  /// The largest absolute value in the gradients of this process; NaN if there is one.
  double largest(std::vector<bool> const& has) const {
    std::vector<at::Tensor> own;
    for (Matrix const& each : matrices_) {
      if (has[each.index]) own.push_back(each.gradient);
    }
    if (own.empty()) return 0;
    at::NoGradGuard const no_gradients;
    return at::stack(at::_foreach_norm(own, std::numeric_limits<double>::infinity()))
        .max()
        .item<double>();
  }

  /// Of a window that is not finite: gradients that are not, in all processes; errors and factors stay.
  void spoil() const {
    for (Matrix const& each : matrices_) {
      each.gradient.fill_(std::numeric_limits<float>::quiet_NaN());
    }
  }

  /// Makes the gradients the sums over processes. `has`: which have one here; `anywhere`: in any process;
  /// `weight`: what turns a mean into such a sum. The numbers must be such that nothing overflows.
  void sum(std::vector<bool> const& has, std::vector<bool> const& anywhere, double weight) {
    std::vector<Matrix const*> active;
    for (Matrix const& each : matrices_) {
      if (anywhere[each.index]) active.push_back(&each);
    }
    if (active.empty()) return;
    draw_factors();
    double const epsilon = settings_.orthogonalization_epsilon;
    double const to_mean = static_cast<double>(all_.size()) / weight;
    std::vector<at::Tensor> xs;
    for (Matrix const* each : active) xs.push_back(x_of(*each, has[each->index], to_mean));
    std::vector<at::Tensor> ps = views_of(p_, active, &LowRank::rows);
    for (std::size_t k = 0; k < active.size(); ++k) {
      at::Tensor const& q = factor_of(*active[k]);
      orthogonalize(q, epsilon);
      at::mm_out(ps[k], xs[k], q);
    }
    add_up(p_, ps);
    std::vector<at::Tensor> qs = views_of(q_, active, &LowRank::columns);
    for (std::size_t k = 0; k < active.size(); ++k) {
      orthogonalize(ps[k], epsilon);
      at::mm_out(qs[k], xs[k].t(), ps[k]);
    }
    add_up(q_, qs);
    for (std::size_t k = 0; k < active.size(); ++k) {
      qs[k].div_(all_.size());
      at::Tensor gradient = active[k]->gradient;
      at::mm_out(gradient, ps[k], qs[k].t());
      if (settings_.error_feedback) xs[k].sub_(gradient);
      gradient.mul_(weight);
      factor_of(*active[k]).copy_(qs[k]);
    }
  }

 private:
  /// X, in the memory of the error; without errors in that of the gradient.
  at::Tensor x_of(Matrix const& matrix, bool has, double to_mean) {
    at::Tensor const& gradient = matrix.gradient;
    if (!settings_.error_feedback) return has ? gradient.mul_(to_mean) : gradient.zero_();
    at::Tensor& error = memory_.of(matrix.parameter).error;
    if (!error.defined()) error = at::zeros_like(matrix.place);
    at::Tensor x = as_matrix(error, matrix.shape);
    if (has) x.add_(gradient, to_mean);
    return x;
  }

  at::Tensor& factor_of(Matrix const& matrix) { return memory_.of(matrix.parameter).q; }

  /// Random factors where there are none from the step before: the same in all processes, and those of
  /// PyTorch's hook with one bucket.
  void draw_factors() {
    auto const lacks = [&](Matrix const& each) {
      at::Tensor const& q = factor_of(each);
      return !settings_.warm_start || !q.defined() || q.size(0) != each.shape.columns ||
             q.size(1) != each.shape.rank;
    };
    if (std::ranges::none_of(matrices_, lacks)) return;
    at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(memory_.next_seed());
    for (Matrix const& each : matrices_) {
      if (!lacks(each)) continue;
      factor_of(each) =
          at::randn({each.shape.columns, each.shape.rank}, generator, at::TensorOptions(at::kFloat))
              .to(each.gradient.device());
    }
  }

  /// [size, rank] of each, one after the other in `flat`.
  static std::vector<at::Tensor> views_of(at::Tensor const& flat,
                                          std::vector<Matrix const*> const& active,
                                          std::int64_t LowRank::* size) {
    std::vector<at::Tensor> views;
    std::int64_t at = 0;
    for (Matrix const* each : active) {
      std::int64_t const rows = each->shape.*size;
      std::int64_t const count = rows * each->shape.rank;
      views.push_back(flat.narrow(0, at, count).view({rows, each->shape.rank}));
      at += count;
    }
    return views;
  }
  void add_up(at::Tensor const& flat, std::vector<at::Tensor> const& views) {
    std::int64_t count = 0;
    for (at::Tensor const& each : views) count += each.numel();
    at::Tensor used = flat.narrow(0, 0, count);
    if (auto const work = all_.start_sum(used)) all_.complete(work, "the sum of factors");
  }

  static at::Tensor as_matrix(at::Tensor const& place, LowRank const& shape) {
    return in_memory_order(place).view({shape.rows, shape.columns});
  }

  /// From the last parameter on, and those of one shape after each other: the order in which PyTorch's
  /// hook draws factors.
  void sort_as_torch() {
    std::ranges::reverse(matrices_);
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> first;
    for (std::size_t k = 0; k < matrices_.size(); ++k) {
      first.emplace(std::pair(matrices_[k].shape.rows, matrices_[k].shape.columns), k);
    }
    std::ranges::stable_sort(matrices_, {}, [&](Matrix const& each) {
      return first.at({each.shape.rows, each.shape.columns});
    });
  }

  Communicator& all_;
  PowerSGDSettings settings_;
  PowerSGDMemory& memory_;
  std::vector<Matrix> matrices_;
  std::optional<FlatTensors> flat_;  ///< the gradients
  at::Tensor p_, q_;                 ///< all P and all Q, as they travel
};

}  // namespace frugal::detail
