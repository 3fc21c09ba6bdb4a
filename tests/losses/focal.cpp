// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/data/pad.hpp>
#include <frugal/losses/focal.hpp>

#include "cases.hpp"

#include <utility>
#include <vector>

namespace frugal_test::losses_focal {

using namespace frugal_test::losses;
using frugal::Focal;

TEST_CASE(
    "focal loss is torchvision's, and of several classes the same, of a batch and of a window") {
  int const compared = each_loss("Focal", [](Json const& which) {
    Focal objective{.gamma = which.at("gamma"), .alpha = which.at("alpha")};
    if (auto const all = numbers(which, "weight"); !all.empty()) objective.class_weights = all;
    check_like_pytorch(which, objective);
  });
  CHECK(compared == 8);
}

TEST_CASE("with gamma 0 and no alpha it is cross entropy") {
  Identity identity;
  at::Tensor const logits = at::randn({6, 3});
  at::Tensor const labels = at::tensor({0, 1, 2, -100, 1, 0}).to(at::kLong);
  Loss const focal = Focal{.gamma = 0}(identity, Batch{logits, labels});
  Loss const entropy = frugal::CrossEntropy{}(identity, Batch{logits, labels});
  CHECK(focal.value.item<double>() == doctest::Approx(entropy.value.item<double>()).epsilon(1e-6));
  CHECK(focal.weight == entropy.weight);
  CHECK(focal.output.is_same(logits));
}

TEST_CASE("gradients stay finite where a label is certain, with gamma below 1 too") {
  Identity identity;
  for (double const gamma : {0.0, 0.5, 1.0, 2.0}) {
    at::Tensor const one = at::tensor({200.0F, -200.0F, 200.0F}).requires_grad_();
    Loss const of_one = Focal{.gamma = gamma}(identity, Batch{one, at::tensor({1, 0, 0})});
    of_one.value.backward();
    CHECK(one.grad().isfinite().all().item<bool>());
    at::Tensor const several =
        at::tensor({200.0F, -200.0F, 0.0F, 0.0F}).view({2, 2}).requires_grad_();
    Loss const of_several = Focal{.gamma = gamma}(identity, Batch{several, at::tensor({0, 1})});
    of_several.value.backward();
    CHECK(several.grad().isfinite().all().item<bool>());
  }
}

TEST_CASE("without a label that counts it is 0, and logits of 16 bits are widened") {
  nothing_counts(Focal{});
  widens(Focal{}, at::randn({8, 3}), at::tensor({0, 1, 2, 0, -100, 2, 1, 1}));
  widens(Focal{}, at::randn({4}), at::tensor({0, 1, 1, 0}));
}

TEST_CASE("the padding of a padded batch does not count") {
  Identity identity;
  std::vector<std::pair<at::Tensor, at::Tensor>> const samples{
      {at::tensor({1.0F, -2.0F, 0.5F}), at::tensor({1.0F, 0.0F, 1.0F})},
      {at::tensor({3.0F}), at::tensor({0.0F})}};
  Loss const padded = Focal{}(identity, frugal::Pad{.value = 9}(samples));
  Loss const flat = Focal{}(
      identity, Batch{at::tensor({1.0F, -2.0F, 0.5F, 3.0F}), at::tensor({1.0F, 0.0F, 1.0F, 0.0F})});
  CHECK(padded.weight == 4);
  CHECK(padded.value.item<double>() == doctest::Approx(flat.value.item<double>()).epsilon(1e-6));
}

TEST_CASE("what does not fit is an error with the numbers") {
  Identity identity;
  auto const refused = [&](Focal const& objective, at::Tensor const& output,
                           at::Tensor const& target) {
    return text_of([&] { objective(identity, Batch{output, target}); });
  };
  CHECK(says(refused({}, at::zeros({4, 3}), at::zeros({5}, at::kLong)),
             "logits are [4, 3] Float, labels are [5] Long"));
  CHECK(says(refused({}, at::zeros({4, 3}), at::zeros({4})), "labels are [4] Float"));
  CHECK(says(refused({.gamma = -1}, at::zeros({4}), at::zeros({4})), "gamma is -1"));
  CHECK(says(refused({.alpha = 2}, at::zeros({4}), at::zeros({4})), "alpha 2"));
  CHECK(says(refused({.class_weights = {1.0, 2.0}}, at::zeros({4}), at::zeros({4})), "Set alpha"));
  CHECK(says(refused({.class_weights = {1.0, 2.0}}, at::zeros({4, 3}), at::zeros({4}, at::kLong)),
             "2 weights, logits are [4, 3] Float"));
}

}  // namespace frugal_test::losses_focal
