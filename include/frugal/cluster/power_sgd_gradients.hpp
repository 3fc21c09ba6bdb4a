// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/flat_tensors.hpp>
#include <frugal/cluster/low_rank.hpp>
#include <frugal/cluster/power_sgd.hpp>
#include <frugal/cluster/power_sgd_memory.hpp>
#include <frugal/cluster/ring_gradients.hpp>
#include <frugal/cluster/sharded_parameters.hpp>
#include <frugal/cluster/window_message.hpp>
#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/state/tensor_part.hpp>

namespace frugal::detail {

/// A window's gradients, of which matrices travel as two factors (PowerSGD). All others are those of
/// RingGradients, with the window's message: it has the weights of all processes, and errors are in
/// units of the mean gradient, so that they mean the same in every window and for every number of
/// processes. So the factors are computed after that exchange.
///
/// A process has the matrix X = mean gradient of its own + error. With an orthonormal Q, the same in
/// all:  P = sum of X Q, orthonormalised;  Q = mean of X' P;  the gradient is P Q', the error X - P Q'.
class PowerSGDGradients {
 public:
  struct Settings {
    RingGradients::Settings ring{};
    PowerSGDSettings power{};
    std::int64_t rank = 1;
  };

  PowerSGDGradients(Communicator& all, Settings const& settings)
      : all_(all), settings_(settings), plain_(all, settings.ring), memory_(all, settings.power) {}

  PowerSGDMemory& memory() { return memory_; }
  /// The memory was loaded.
  void forget() { parameters_.clear(); }

  /// Before a window.
  void at_step(std::uint64_t step) {
    compresses_now_ = all_.size() > 1 && step >= settings_.power.start_step;
  }

  void begin(std::vector<at::Tensor> const& parameters) {
    if (!fits(parameters)) make(parameters);
    has_.assign(parameters_.size(), false);
    std::size_t const words =
        WindowMessage(settings_.ring.micro_batches, parameters_.size()).size();
    plain_.begin(plain_parameters_, words + (compresses_ ? 1 : 0));
  }
  void before(bool is_last, double const& unit) { plain_.before(is_last, unit); }
  void after() {
    plain_.after();
    at::NoGradGuard const no_gradients;
    for (Matrix const& each : matrices_) {
      at::Tensor const gradient =
          std::exchange(parameters_[each.index].mutable_grad(), at::Tensor());
      if (!gradient.defined()) continue;
      require_dense(gradient);
      at::Tensor const& place = places_[each.index];
      if (has_[each.index]) {
        place.add_(gradient);
      } else {
        place.copy_(gradient);
      }
      has_[each.index] = true;
    }
  }

  std::vector<bool> const& has() {
    for (std::size_t k = 0; k < plain_indices_.size(); ++k)
      has_[plain_indices_[k]] = plain_.has()[k];
    return has_;
  }

  void begin_rest() { plain_.begin_rest(); }

  /// With the message travels the largest absolute value in the matrices of this process, so that all
  /// find a window that is not finite before anything of it gets into the errors.
  at::Tensor exchange(at::Tensor const& message) {
    if (!compresses_) return plain_.exchange(message);
    at::Tensor const word =
        at::full({1}, std::bit_cast<std::int64_t>(largest_here()), at::TensorOptions(at::kLong));
    at::Tensor const rows = plain_.exchange(at::cat({message, word}));
    largest_ = 0;
    for (std::int64_t rank = 0; rank < all_.size(); ++rank) {
      auto const each = std::bit_cast<double>(rows[rank][message.numel()].item<std::int64_t>());
      largest_ = std::isnan(each) ? each : std::max(largest_, each);
      if (std::isnan(largest_)) break;
    }
    return rows.narrow(1, 0, message.numel());
  }

  /// After the message. `weight`: of the losses of all processes; `scale`: what they were multiplied
  /// by; `has`: which parameters have got a gradient in any process.
  void weigh(double weight, double scale, std::vector<bool> const& has) {
    weight_ = weight * scale;
    has_anywhere_ = has;
  }

  std::vector<at::Tensor> sum(std::vector<bool> const& counts) {
    at::NoGradGuard const no_gradients;
    std::vector<at::Tensor> const sums = plain_.sum(counts);
    std::vector<at::Tensor> present;
    for (std::size_t k = 0; k < sums.size(); ++k) {
      places_[plain_indices_[k]] = sums[k];
      if (has_anywhere_[plain_indices_[k]]) present.push_back(sums[k]);
    }
    if (weight_ == 0 || (matrices_.empty() && owed_.empty())) return places_;
    bool const is_finite = !first_non_finite(present) && is_bounded();
    if (is_finite) return_errors();
    compress(is_finite);
    return places_;
  }
  std::vector<at::Tensor> own_sum(std::vector<bool> const& counts, ShardedParameters& sharded) {
    return sharded.parts_of(sum(counts));
  }

 private:
  /// A parameter whose gradients travel as factors.
  struct Matrix {
    std::size_t index = 0;
    LowRank shape{};
    at::Tensor gradient{};  ///< [rows, columns]: the memory of its place
  };

  double largest_here() const {
    std::vector<at::Tensor> own;
    for (Matrix const& each : matrices_) {
      if (has_[each.index]) own.push_back(each.gradient);
    }
    if (own.empty()) return 0;
    at::NoGradGuard const no_gradients;
    return at::stack(at::_foreach_norm(own, std::numeric_limits<double>::infinity()))
        .max()
        .item<double>();
  }
  /// Whether no sum below can overflow: of rows, of columns, and over processes.
  bool is_bounded() const {
    constexpr double limit = std::numeric_limits<float>::max() / 1e12;
    return largest_ <= limit && largest_ * to_mean() <= limit;
  }
  /// What turns the sum of a process's gradients into its mean gradient.
  double to_mean() const { return static_cast<double>(all_.size()) / weight_; }

  /// Errors of parameters that are not compressed, because a run goes on in one process or with other
  /// settings: their mean is what the gradients so far lack.
  void return_errors() {
    std::erase_if(owed_, [&](std::size_t i) {
      if (has_anywhere_[i]) places_[i].add_(memory_.take_mean(parameters_[i]), weight_);
      return has_anywhere_[i];
    });
  }

  /// A window that is not finite leaves everything as it was, and gradients that are not.
  void compress(bool is_finite) {
    std::vector<Matrix const*> active;
    for (Matrix const& each : matrices_) {
      if (has_anywhere_[each.index]) active.push_back(&each);
    }
    if (!is_finite) {
      for (Matrix const* each : active)
        each->gradient.fill_(std::numeric_limits<float>::quiet_NaN());
      return;
    }
    if (active.empty()) return;
    draw_factors();

    bool const keeps_errors = settings_.power.error_feedback;
    double const epsilon = settings_.power.orthogonalization_epsilon;
    std::vector<at::Tensor> xs;
    for (Matrix const* each : active) {
      xs.push_back(keeps_errors ? with_error(*each) : mean_gradient(*each));
    }
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
      if (keeps_errors) xs[k].sub_(gradient);
      gradient.mul_(weight_);
      factor_of(*active[k]).copy_(qs[k]);
    }
  }

  /// X in the memory of the error.
  at::Tensor with_error(Matrix const& matrix) {
    at::Tensor& error = memory_.of(parameters_[matrix.index]).error;
    if (!error.defined()) error = at::zeros_like(places_[matrix.index]);
    at::Tensor x = as_matrix(error, matrix.shape);
    if (has_[matrix.index]) x.add_(matrix.gradient, to_mean());
    return x;
  }
  /// X without an error, in the memory of the gradient.
  at::Tensor mean_gradient(Matrix const& matrix) const {
    return has_[matrix.index] ? matrix.gradient.mul_(to_mean()) : matrix.gradient.zero_();
  }

  at::Tensor& factor_of(Matrix const& matrix) { return memory_.of(parameters_[matrix.index]).q; }

  /// Random factors where there are none from the step before: the same in all processes, and those of
  /// PyTorch's hook with one bucket.
  void draw_factors() {
    auto const lacks = [&](Matrix const& each) {
      at::Tensor const& q = factor_of(each);
      return !settings_.power.warm_start || !q.defined() || q.size(0) != each.shape.columns ||
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

  bool fits(std::vector<at::Tensor> const& parameters) const {
    if (parameters.size() != parameters_.size() || compresses_ != compresses_now_) return false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].is_same(parameters_[i]) || parameters[i].scalar_type() != types_[i] ||
          parameters[i].device() != devices_[i])
        return false;
    }
    return true;
  }

  void make(std::vector<at::Tensor> const& parameters) {
    parameters_ = parameters;
    compresses_ = compresses_now_;
    places_.assign(parameters_.size(), at::Tensor());
    types_.clear();
    devices_.clear();
    plain_parameters_.clear();
    plain_indices_.clear();
    matrices_.clear();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor const& each = parameters_[i];
      types_.push_back(each.scalar_type());
      devices_.push_back(each.device());
      if (is_compressed(each)) {
        matrices_.push_back({.index = i, .shape = LowRank::of(each, settings_.rank)});
      } else {
        plain_indices_.push_back(i);
        plain_parameters_.push_back(each);
      }
    }
    if (!matrices_.empty()) lay_out();
    std::vector<at::Tensor> like = parameters_;
    for (Matrix const& each : matrices_) like[each.index] = places_[each.index];
    memory_.place(parameters_, like);
    owed_ = plain_indices_;
    std::erase_if(owed_, [&](std::size_t i) { return !memory_.has_error(parameters_[i]); });
  }

  void lay_out() {
    sort_as_torch();
    std::vector<at::Tensor> like;
    std::int64_t ps = 0, qs = 0;
    for (Matrix const& each : matrices_) {
      like.push_back(parameters_[each.index]);
      ps += each.shape.rows * each.shape.rank;
      qs += each.shape.columns * each.shape.rank;
    }
    flat_.emplace(like, 1);
    for (std::size_t k = 0; k < matrices_.size(); ++k) {
      places_[matrices_[k].index] = flat_->views()[k];
      matrices_[k].gradient = as_matrix(flat_->views()[k], matrices_[k].shape);
    }
    p_ = at::empty({ps}, flat_->flat().options());
    q_ = at::empty({qs}, flat_->flat().options());
  }

  /// The factors are of one type and device.
  bool is_compressed(at::Tensor const& parameter) const {
    return compresses_ && parameter.scalar_type() == at::kFloat &&
           parameter.device() == parameters_.back().device() &&
           LowRank::of(parameter, settings_.rank).pays(settings_.power.min_compression_rate);
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
  Settings settings_;
  RingGradients plain_;
  PowerSGDMemory memory_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::ScalarType> types_;
  std::vector<c10::Device> devices_;
  std::vector<at::Tensor> places_;            ///< of the sums, for each parameter
  std::vector<at::Tensor> plain_parameters_;  ///< those whose gradients travel as they are
  std::vector<std::size_t> plain_indices_;
  std::vector<std::size_t> owed_;  ///< of those, the ones that have errors from when they were not
  std::vector<Matrix> matrices_;
  std::optional<FlatTensors> flat_;  ///< the matrices' gradients
  at::Tensor p_, q_;                 ///< all P and all Q, as they travel
  std::vector<bool> has_;            ///< a gradient here, in this window
  std::vector<bool> has_anywhere_;
  double weight_ = 0;   ///< of the window, times what losses were multiplied by
  double largest_ = 0;  ///< absolute value in the matrices of all processes
  bool compresses_now_ = false;
  bool compresses_ = false;
};

}  // namespace frugal::detail
