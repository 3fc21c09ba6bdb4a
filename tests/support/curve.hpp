// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/frugal.hpp>

#include "support/scripted.hpp"

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <vector>

/// Runs in a folder whose validation losses are a list, also over several starts.
namespace frugal_test::support {

/// A step takes 1 from the weight, which so has the number of the step; a validation returns the
/// loss of that step.
struct Curve {
  std::vector<double> losses;

  template <class Module>
  at::Tensor operator()(Module& module, frugal::Batch const&) const {
    if (at::GradMode::is_enabled()) return module->weight.sum();
    auto const step = std::lround(-module->weight.template item<double>());
    double const loss = step == 0 ? 0.0 : losses.at(static_cast<std::size_t>(step) - 1);
    return at::scalar_tensor(loss, at::kDouble);
  }
};

/// One step per epoch and a validation after each, until the losses end. `value`: the content of
/// the validation data, which changes no loss.
template <class Saves, class... Ps>
frugal::Report follow(std::filesystem::path const& folder, std::vector<double> const& losses,
                      Saves const& saves, double value = 1, Ps const&... policies) {
  frugal::Trainer trainer{std::make_shared<OneWeight>(),
                          Curve{losses},
                          frugal::Settings{.run_dir = folder, .epochs = losses.size()},
                          frugal::Optimize<frugal::SGD>{.lr = 1.0},
                          saves,
                          policies...};
  auto const data = [](double content) {
    return frugal::TensorDataset(frugal::Batch{at::full({1, 1}, content), at::zeros({1})},
                                 {.batch = 1});
  };
  frugal::TensorDataset train = data(0);
  frugal::TensorDataset valid = data(value);
  return trainer.fit(train, valid);
}

}  // namespace frugal_test::support
