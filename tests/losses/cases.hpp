// SPDX-License-Identifier: Apache-2.0
// Cases of tests/reference/losses.json.
#pragma once

#include "core/run/objective_cases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace frugal_test::losses {

using namespace frugal_test::objectives;
using frugal::Batch;
using frugal::Loss;

/// Calls `check(case)` for each case of an objective; returns their number.
template <class Check>
int each_loss(std::string const& objective, Check&& check) {
  Json const file = reference("losses.json");
  int count = 0;
  for (Json const& which : file.at("cases")) {
    if (which.at("objective") != objective) continue;
    CAPTURE(which.at("name").get<std::string>());
    check(which);
    ++count;
  }
  return count;
}

/// Checks value and gradient of one batch.
template <class Objective>
void check_whole(Json const& which, Objective const& objective) {
  Case const expected(which);
  Identity identity;
  at::Tensor const output = expected.output.clone().requires_grad_();
  Loss const whole = objective(identity, Batch{output, expected.target});
  whole.value.backward();
  CHECK(whole.value.template item<double>() == doctest::Approx(expected.value).epsilon(2e-6));
  CHECK(distance(output.grad(), expected.gradient) < 2e-6);
}

inline std::string text_of(auto&& call) {
  try {
    call();
  } catch (frugal::Error const& error) {
    return error.what();
  }
  return "none";
}
inline bool says(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

/// A batch whose labels are all -100 has loss 0, weight 0 and gradients of 0, whatever the logits.
template <class Objective>
void nothing_counts(Objective const& objective) {
  Identity identity;
  at::Tensor const logits = at::tensor({200.0F, -300.0F, 4.0F, 1.0F}).view({2, 2}).requires_grad_();
  Loss const loss = objective(identity, Batch{logits, at::full({2}, -100, at::kLong)});
  CHECK(loss.value.template item<double>() == 0);
  CHECK(loss.weight == 0);
  loss.value.backward();
  CHECK(logits.grad().equal(at::zeros({2, 2})));
}

/// Of 16 bits the value is that of the same numbers in single precision.
template <class Objective>
void widens(Objective const& objective, at::Tensor const& output, at::Tensor const& target) {
  Identity identity;
  for (at::ScalarType const type : {at::kHalf, at::kBFloat16}) {
    at::Tensor const half = output.to(type);
    Loss const loss = objective(identity, Batch{half, target});
    CHECK((loss.value.scalar_type() == at::kFloat));
    CHECK(loss.value.template item<double>() ==
          objective(identity, Batch{half.to(at::kFloat), target}).value.template item<double>());
  }
}

}  // namespace frugal_test::losses
