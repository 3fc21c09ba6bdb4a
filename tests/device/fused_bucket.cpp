// SPDX-License-Identifier: Apache-2.0
// A learning rate on a device, as in a recipe with CudaGraph.
#include <doctest/doctest.h>

#include <frugal/policy/optimize.hpp>

#include "support/fake_device.hpp"
#include "support/running.hpp"

namespace frugal_test::device_fused_bucket {

/// An update that subtracts the given rate from each parameter.
struct TakeAway {
  static bool has_first_step() { return false; }
  static double initial(std::size_t) { return 0; }
  template <class Rate>
  void apply(frugal::detail::FusedStep<Rate> const& step) const {
    rates.push_back(step.lr);
  }
  std::vector<at::Tensor>& rates;
};

TEST_CASE("a rate on the device takes one operator per step, and one allocation") {
  at::NoGradGuard const no_gradients;
  auto const on_device = at::TensorOptions().device(fake::device());
  frugal::Parameters parameters;
  parameters.names = {"weight"};
  parameters.tensors = {at::zeros({2}, on_device).requires_grad_()};
  parameters.tensors[0].mutable_grad() = at::zeros({2}, on_device);
  frugal::GradientList gradients;
  gradients.collect(parameters);
  frugal::detail::FusedBucket bucket(0.1, 0, 0);
  bucket.add("weight", parameters.tensors[0]);
  at::Tensor const factor = at::ones({}, on_device.dtype(at::kDouble));
  std::vector<at::Tensor> rates;
  TakeAway const rule{rates};
  bucket.step(rule, gradients, factor, {});

  double expected = 1;
  for (int i = 0; i < 3; ++i) {
    factor.fill_(expected /= 3);
    auto const operators = support::operators_of([&] { bucket.step(rule, gradients, factor, {}); });
    CHECK(operators.at("aten::mul") == 1);
    CHECK(operators.count("aten::_local_scalar_dense") == 0);
    CHECK((rates.back().scalar_type() == at::kFloat));
    CHECK(rates.back().is_same(rates.front()));
    CHECK(rates.back().cpu().item<float>() == static_cast<float>(0.1 * expected));
  }
}

}  // namespace frugal_test::device_fused_bucket
