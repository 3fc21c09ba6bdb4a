// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/version.h>

#include <cstdint>
#include <filesystem>
#include <frugal/model/save_weights.hpp>
#include <memory>
#include <string>

#include "support/step_folder.hpp"

namespace frugal_test::support {

/// A linear layer that counts the samples that it has seen in training, as the fake step's (fake_step.cpp).
struct CountedLinear : torch::nn::Module {
  explicit CountedLinear(std::int64_t features = 3)
      : weight(register_parameter("weight", torch::full({1, features}, 0.25))),
        bias(register_parameter("bias", torch::zeros({1}))),
        seen(register_buffer("seen", torch::zeros({}, torch::kLong))) {}
  at::Tensor forward(at::Tensor const& x) {
    if (is_training() && at::GradMode::is_enabled()) seen.add_(x.size(0));
    return at::linear(x, weight, bias);
  }
  at::Tensor weight, bias, seen;
};

/// A step package of the fake step, with this program's LibTorch.
class FakePackage : public StepFolder {
 public:
  /// `step`: how the step's file is called, by which the fake knows what is wrong with it.
  template <class Change>
  explicit FakePackage(Change&& change, std::string const& step = "step-0.so")
      : FakePackage(change, step, *std::make_shared<CountedLinear>()) {}
  /// With the weights of another module than the linear layer.
  template <class Change>
  FakePackage(Change&& change, std::string const& step, torch::nn::Module& module)
      : StepFolder(TORCH_VERSION, step) {
    frugal::save_weights(module, path());
    for (std::string const& name :
         {step, std::string("evaluate-0.so"), std::string("predict-0.so")}) {
      std::filesystem::copy_file(FRUGAL_FAKE_STEP, *this / name,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    finish(change);
  }
  FakePackage() : FakePackage([](Json&) {}) {}
  static FakePackage of(std::string const& step) {
    return FakePackage([](Json&) {}, step);
  }
};

}  // namespace frugal_test::support
