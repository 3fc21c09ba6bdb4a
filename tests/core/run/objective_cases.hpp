// SPDX-License-Identifier: Apache-2.0
// Cases of tests/reference/objectives.json, as whole batches and as windows of micro-batches.
#pragma once

#include <doctest/doctest.h>

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <frugal/core/loop/window.hpp>
#include <frugal/core/run/loss.hpp>
#include <frugal/core/source/batch.hpp>

#include "support/reference.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace frugal_test::objectives {

using namespace frugal_test::support;

/// Returns its input: the batch's data are the output.
struct Identity : torch::nn::Module {
  at::Tensor forward(at::Tensor const& data) { return data; }
};

struct Case {
  explicit Case(Json const& which)
      : output(tensor_in(which.at("output"), shape_in(which.at("shape")))),
        target(tensor_in(which.at("target"), shape_in(which.at("target_shape")),
                         which.at("target_is_whole").get<bool>() ? at::kLong : at::kFloat)),
        value(which.at("value")),
        gradient(tensor_in(which.at("gradient"), shape_in(which.at("shape")))) {}

  at::Tensor output, target;
  double value;
  at::Tensor gradient;
};

inline std::vector<double> numbers(Json const& which, char const* key) {
  return which.at(key).get<std::vector<double>>();
}

/// Checks value and gradient of an objective: of the whole batch, and of a window that has it in
/// micro-batches of 3, 1, 3, 1, ... samples.
template <class Objective>
void check_like_pytorch(Json const& which, Objective const& objective) {
  CAPTURE(which.at("name").get<std::string>());
  Case const expected(which);
  Identity identity;
  constexpr double rounding = 2e-6;

  at::Tensor const output = expected.output.clone().requires_grad_();
  frugal::Loss const whole = objective(identity, frugal::Batch{output, expected.target});
  whole.value.backward();
  CHECK(whole.value.template item<double>() == doctest::Approx(expected.value).epsilon(rounding));
  CHECK(distance(output.grad(), expected.gradient) < rounding);

  at::Tensor const pieces = expected.output.clone().requires_grad_();
  frugal::Window<16> window;
  window.open();
  double sum = 0;
  bool large = true;
  for (std::int64_t at = 0; at < pieces.size(0); large = !large) {
    std::int64_t const size = std::min<std::int64_t>(large ? 3 : 1, pieces.size(0) - at);
    frugal::Batch const part{pieces.narrow(0, at, size), expected.target.narrow(0, at, size)};
    frugal::Loss const loss = objective(identity, part);
    double const weight = loss.weight ? *loss.weight : static_cast<double>(size);
    if (weight != 0) {
      double const factor = window.shrink(weight);
      if (pieces.grad().defined()) pieces.mutable_grad().mul_(factor);
      loss.value.backward(window.seed({.value = loss.value, .weight = weight}));
      sum += loss.value.template item<double>() * weight;
    } else {
      CHECK(loss.value.template item<double>() == 0);
    }
    window.add(part, weight);
    at += size;
  }
  window.normalize({pieces.grad()});
  CHECK(sum / window.weight() == doctest::Approx(expected.value).epsilon(rounding));
  CHECK(distance(pieces.grad(), expected.gradient) < rounding);
}

/// Calls `check(case)` for each case of an objective; returns their number.
template <class Check>
int each_case(std::string const& objective, Check&& check) {
  Json const file = reference("objectives.json");
  int count = 0;
  for (Json const& which : file.at("cases")) {
    if (which.at("objective") != objective) continue;
    check(which);
    ++count;
  }
  return count;
}

}  // namespace frugal_test::objectives
