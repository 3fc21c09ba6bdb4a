// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <frugal/cluster/agreement/window_message.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/power_sgd.hpp>
#include <frugal/cluster/power_sgd/factored_sum.hpp>
#include <frugal/cluster/power_sgd/memory.hpp>
#include <frugal/cluster/replicate/ring_gradients.hpp>
#include <frugal/cluster/shard/sharded_parameters.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>
#include <frugal/core/libtorch/finite.hpp>

namespace frugal::detail {

/// A window's gradients, of which matrices travel as two factors (PowerSGD). All others are those of
/// RingGradients, with the window's message: it has the weights of all processes, and errors are in
/// units of the mean gradient, so that they mean the same in every window and for every number of
/// processes. So the factors are computed after that exchange.
class PowerSGDGradients {
 public:
  struct Settings {
    RingGradients::Settings ring{};
    PowerSGDSettings power{};
    std::int64_t rank = 1;
  };

  PowerSGDGradients(Communicator& all, Settings const& settings)
      : all_(all),
        settings_(settings),
        plain_(all, settings.ring),
        memory_(all, settings.power),
        factored_(all, settings.power, memory_) {}
  PowerSGDGradients(PowerSGDGradients const&) = delete;
  PowerSGDGradients& operator=(PowerSGDGradients const&) = delete;
  ~PowerSGDGradients() = default;

  PowerSGDMemory& memory() { return memory_; }
  /// The memory was loaded.
  void forget() { parameters_.clear(); }

  /// Before a window.
  void at_step(std::uint64_t step) {
    compresses_now_ = all_.size() > 1 && step >= settings_.power.start_step;
  }

  void begin(std::vector<at::Tensor> const& parameters, ShardedParameters const* sharded) {
    if (!fits(parameters)) make(parameters);
    has_.assign(parameters_.size(), false);
    std::size_t const words =
        WindowMessage(settings_.ring.micro_batches, parameters_.size()).size();
    plain_.begin(plain_parameters_, sharded, words + (compresses_ ? 1 : 0));
  }
  void before(bool is_last, double const& unit) { plain_.before(is_last, unit); }
  void after() {
    plain_.after();
    at::NoGradGuard const no_gradients;
    for (FactoredSum::Matrix const& each : factored_.matrices()) {
      at::Tensor const gradient = std::exchange(each.parameter.mutable_grad(), at::Tensor());
      if (!gradient.defined()) continue;
      require_dense(gradient);
      if (has_[each.index]) {
        each.place.add_(gradient);
      } else {
        each.place.copy_(gradient);
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
    at::Tensor const word = at::full({1}, std::bit_cast<std::int64_t>(factored_.largest(has_)),
                                     at::TensorOptions(at::kLong));
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
    if (weight_ == 0 || (!compresses_ && owed_.empty())) return places_;
    if (first_non_finite(present) || !is_bounded()) {
      factored_.spoil();
      return places_;
    }
    return_errors();
    factored_.sum(has_, has_anywhere_, weight_);
    return places_;
  }
  std::vector<at::Tensor> own_sum(std::vector<bool> const& counts, ShardedParameters& sharded) {
    return sharded.parts_of(sum(counts));
  }

 private:
  /// Whether no sum of FactoredSum can overflow: of rows, of columns, and over processes.
  bool is_bounded() const {
    constexpr double limit = std::numeric_limits<float>::max() / 1e12;
    return largest_ <= limit && largest_ * static_cast<double>(all_.size()) / weight_ <= limit;
  }

  /// Errors of parameters that are not compressed, because a run goes on in one process or with other
  /// settings: their mean is what the gradients so far lack.
  void return_errors() {
    std::erase_if(owed_, [&](std::size_t i) {
      if (has_anywhere_[i]) places_[i].add_(memory_.take_mean(parameters_[i]), weight_);
      return has_anywhere_[i];
    });
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
    std::vector<FactoredSum::Matrix> matrices;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor const& each = parameters_[i];
      types_.push_back(each.scalar_type());
      devices_.push_back(each.device());
      if (is_compressed(each)) {
        matrices.push_back(
            {.index = i, .parameter = each, .shape = LowRank::of(each, settings_.rank)});
      } else {
        plain_indices_.push_back(i);
        plain_parameters_.push_back(each);
      }
    }
    factored_.lay_out(std::move(matrices));
    std::vector<at::Tensor> like = parameters_;
    for (FactoredSum::Matrix const& each : factored_.matrices()) {
      like[each.index] = places_[each.index] = each.place;
    }
    memory_.place(parameters_, like);
    owed_ = plain_indices_;
    std::erase_if(owed_, [&](std::size_t i) { return !memory_.has_error(parameters_[i]); });
  }

  /// The factors are of one type and device.
  bool is_compressed(at::Tensor const& parameter) const {
    return compresses_ && parameter.scalar_type() == at::kFloat &&
           parameter.device() == parameters_.back().device() &&
           LowRank::of(parameter, settings_.rank).pays(settings_.power.min_compression_rate);
  }

  Communicator& all_;
  Settings settings_;
  RingGradients plain_;
  PowerSGDMemory memory_;
  FactoredSum factored_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::ScalarType> types_;
  std::vector<c10::Device> devices_;
  std::vector<at::Tensor> places_;            ///< of the sums, for each parameter
  std::vector<at::Tensor> plain_parameters_;  ///< those whose gradients travel as they are
  std::vector<std::size_t> plain_indices_;
  std::vector<std::size_t> owed_;  ///< of those, the ones that have errors from when they were not
  std::vector<bool> has_;          ///< a gradient here, in this window
  std::vector<bool> has_anywhere_;
  double weight_ = 0;   ///< of the window, times what losses were multiplied by
  double largest_ = 0;  ///< absolute value in the matrices of all processes
  bool compresses_now_ = false;
  bool compresses_ = false;
};

}  // namespace frugal::detail
