// SPDX-License-Identifier: Apache-2.0
// A run with a list of validation losses, for tests of policies that watch validation.
#pragma once

#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include "support/running.hpp"

namespace frugal_test::support {

struct OneWeight : torch::nn::Module {
  OneWeight() : weight(register_parameter("weight", at::zeros({1}))) {}
  at::Tensor weight;
};

/// Trains a weight with gradient 1; each validation returns the next number of the list. What is
/// measured before the first step is a trial, whose results nobody sees.
struct Scripted {
  std::vector<double> const* curve;
  std::size_t* at;
  mutable bool has_trained = false;
  template <class Module>
  at::Tensor operator()(Module& module, at::Tensor const&) const {
    if (at::GradMode::is_enabled()) {
      has_trained = true;
      return module->weight.sum();
    }
    if (!has_trained) return at::zeros({});
    return at::scalar_tensor(curve->at((*at)++), at::kDouble);
  }
};

/// Its type says that it may add metrics to a validation; it adds none.
struct AddsNothing {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.AddsNothing";
  };
  using listens = frugal::list<frugal::around::validate>;
  struct State {
    explicit State(AddsNothing const&) {}
    template <class Next>
    frugal::Metrics around_validate(frugal::ValidationRun const&, Next&& next) {
      return next();
    }
  };
};

/// One step per epoch and a validation after each, until the curve ends or a policy stops it.
template <class... Ps>
frugal::Report run_script(std::vector<double> const& curve, Ps const&... policies) {
  std::size_t at = 0;
  frugal::Trainer trainer{std::make_shared<OneWeight>(), Scripted{&curve, &at},
                          frugal::Settings{.epochs = curve.size()},
                          frugal::Optimize<frugal::SGD>{.lr = 1.0}, policies...};
  std::vector<at::Tensor> const one{at::zeros({1})};
  return trainer.fit(one, one);
}

}  // namespace frugal_test::support
