// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/losses/contrastive.hpp>

#include <ATen/autocast_mode.h>

#include "cases.hpp"

namespace frugal_test::losses_contrastive {

using namespace frugal_test::losses;
using frugal::Contrastive;

TEST_CASE("NT-Xent is SimCLR's formula, values and gradients") {
  int const compared = each_loss("Contrastive", [](Json const& which) {
    check_whole(which, Contrastive{.temperature = which.at("temperature")});
  });
  CHECK(compared == 3);
}

TEST_CASE("lengths of embeddings do not matter, a zero embedding has finite gradients") {
  Identity identity;
  at::Tensor const views = at::randn({5, 2, 4});
  double const one = Contrastive{}(identity, Batch{views, {}}).value.item<double>();
  CHECK(Contrastive{}(identity, Batch{views * 1000, {}}).value.item<double>() ==
        doctest::Approx(one).epsilon(1e-6));
  at::Tensor const zero = at::zeros({3, 2, 4}).requires_grad_();
  Contrastive{}(identity, Batch{zero, {}}).value.backward();
  CHECK(zero.grad().isfinite().all().item<bool>());
}

TEST_CASE("autocast does not round the similarities, and embeddings of 16 bits are widened") {
  Identity identity;
  at::Tensor const views = at::randn({6, 2, 16});
  Contrastive const objective{.temperature = 0.01};
  double const one = objective(identity, Batch{views, {}}).value.item<double>();
  at::autocast::set_autocast_enabled(at::kCPU, true);
  double const under_autocast = objective(identity, Batch{views, {}}).value.item<double>();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  CHECK(under_autocast == one);
  widens(objective, views, {});
}

TEST_CASE("its weight is the samples, and a temperature of 0 is refused") {
  Identity identity;
  CHECK(Contrastive{}(identity, Batch{at::randn({7, 2, 4}), {}}).weight == 7);
  CHECK(says(
      text_of([&] { Contrastive{.temperature = 0}(identity, Batch{at::randn({4, 2, 5}), {}}); }),
      "Set it above 0"));
}

}  // namespace frugal_test::losses_contrastive
