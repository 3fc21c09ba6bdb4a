// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstddef>
#include <string>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/optimize/groups.hpp>

namespace frugal {

struct SGD;
/// Of Outer: stochastic gradient descent with Nesterov momentum.
struct Nesterov {};

/// Option of Replicate<LocalSteps<H>>: the optimizer of the outer steps. Its gradient is the weights at
/// a round's start less the mean of all processes' weights at its end.
template <class Rule>
struct Outer;

/// Plain outer steps: the weights move from a round's start towards the mean, by `lr` of the way. 1 is
/// the mean itself, exactly: local SGD and federated averaging.
///
/// Source  McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data"
///         (2017).
template <>
struct Outer<SGD> {
  static constexpr bool is_outer = true;

  double lr = 1.0;  ///< learning rate of the outer steps; no schedule changes it

  void check() const { detail::require_learning_rate(lr, "Outer<SGD>"); }
  template <class Compare>
  void compare(Compare&& with_others) const {
    with_others("the outer lr", lr);
  }
};

/// Outer steps with Nesterov momentum, as torch.optim.SGD(nesterov=True) makes them.
///
/// Source  Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models"
///         (2023), with these values.
template <>
struct Outer<Nesterov> {
  static constexpr bool is_outer = true;

  double lr = 0.7;        ///< learning rate of the outer steps; no schedule changes it
  double momentum = 0.9;  ///< fraction of the last outer step that is kept

  void check() const {
    detail::require_learning_rate(lr, "Outer<Nesterov>");
    if (momentum >= 0 && momentum < 1) return;
    throw SettingsError({.what = "momentum is " + detail::general(momentum, 6),
                         .where = "Outer<Nesterov>",
                         .why = "it is the fraction of the last outer step that is kept",
                         .fix = "Give a number from 0 to less than 1; 0.9 is the default."});
  }
  template <class Compare>
  void compare(Compare&& with_others) const {
    with_others("the outer lr", lr);
    with_others("the outer momentum", momentum);
  }
};

namespace detail {

struct outer_option {
  template <class O>
  static constexpr bool has = requires { O::is_outer; };
};

/// The type in which weights of several processes are added up: 16 bits would lose an outer gradient.
inline at::ScalarType type_of_sums(at::Tensor const& weight) {
  return at::promote_types(weight.scalar_type(), at::kFloat);
}

/// Makes outer steps, the same in all processes.
template <class Rule>
class OuterOptimizer;

template <>
class OuterOptimizer<Outer<SGD>> {
 public:
  explicit OuterOptimizer(Outer<SGD> const& rule) : rule_(rule) {}

  /// `weights` of the round's start; `mean` of the weights at its end, in type_of_sums.
  void step(std::vector<at::Tensor> const& weights, std::vector<at::Tensor> const& mean) const {
    at::NoGradGuard const no_gradients;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      // lerp at 1 is the mean to the bit, and start - (start - mean) is not.
      weights[i].copy_(at::lerp(weights[i].to(mean[i].scalar_type()), mean[i], rule_.lr));
    }
  }
  template <class Archive>
  void persist(Archive&, std::vector<std::string> const&) {}

 private:
  Outer<SGD> rule_;
};

template <>
class OuterOptimizer<Outer<Nesterov>> {
 public:
  explicit OuterOptimizer(Outer<Nesterov> const& rule) : rule_(rule) {}

  void step(std::vector<at::Tensor> const& weights, std::vector<at::Tensor> const& mean) {
    at::NoGradGuard const no_gradients;
    momentum_.resize(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      at::Tensor const start = weights[i].to(mean[i].scalar_type());
      at::Tensor const gradient = start - mean[i];
      at::Tensor& momentum = momentum_[i];
      if (momentum.defined()) {
        momentum = momentum.to(gradient.device());  // a checkpoint's is in host memory
        momentum.mul_(rule_.momentum).add_(gradient);
      } else {
        momentum = gradient.clone();
      }
      weights[i].copy_(start - gradient.add_(momentum, rule_.momentum).mul_(rule_.lr));
    }
  }
  /// `names` of the weights. Empty before the first outer step.
  template <class Archive>
  void persist(Archive& archive, std::vector<std::string> const& names) {
    archive.scope("momentum", [&](auto& inner) {
      momentum_.resize(names.size());
      for (std::size_t i = 0; i < names.size(); ++i) inner(names[i], momentum_[i]);
    });
  }

 private:
  Outer<Nesterov> rule_;
  std::vector<at::Tensor> momentum_;
};

}  // namespace detail
}  // namespace frugal
