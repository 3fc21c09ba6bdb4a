// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/losses/dice_loss.hpp>

#include "cases.hpp"

namespace frugal_test::losses_dice_loss {

using namespace frugal_test::losses;
using frugal::DiceLoss;

TEST_CASE("soft Dice is V-Net's formula, values and gradients") {
  int const compared = each_loss("DiceLoss", [](Json const& which) {
    check_whole(which, DiceLoss{.smooth = which.at("smooth")});
  });
  CHECK(compared == 5);
}

TEST_CASE("a perfect prediction has loss 0, its opposite almost 1") {
  Identity identity;
  at::Tensor const labels = at::tensor({0, 1, 1, 0});
  at::Tensor const right = (labels.to(at::kFloat) * 2 - 1) * 100;
  CHECK(DiceLoss{}(identity, Batch{right, labels}).value.item<double>() ==
        doctest::Approx(0).epsilon(1e-6));
  CHECK(DiceLoss{}(identity, Batch{-right, labels}).value.item<double>() ==
        doctest::Approx(1).epsilon(1e-5));
}

TEST_CASE("a window has the mean of its micro-batches, weighted by the labels that count") {
  Identity identity;
  at::Tensor const logits = at::randn({4, 3, 5});
  at::Tensor const labels = at::randint(3, {4, 5}, at::kLong);
  labels[3].slice(0, 0, 3).fill_(-100);
  Loss const first = DiceLoss{}(identity, Batch{logits.narrow(0, 0, 3), labels.narrow(0, 0, 3)});
  Loss const last = DiceLoss{}(identity, Batch{logits.narrow(0, 3, 1), labels.narrow(0, 3, 1)});
  CHECK(first.weight == 15);
  CHECK(last.weight == 2);
}

TEST_CASE("without a label that counts it is 0, and logits of 16 bits are widened") {
  nothing_counts(DiceLoss{});
  widens(DiceLoss{}, at::randn({8, 3}), at::tensor({0, 1, 2, 0, -100, 2, 1, 1}));
}

TEST_CASE("a NaN logit of an ignored label has no effect on the value") {
  Identity identity;
  at::Tensor const logits = at::randn({3, 2});
  logits[2].fill_(std::numeric_limits<float>::quiet_NaN());
  at::Tensor const labels = at::tensor({0, 1, -100});
  CHECK(DiceLoss{}(identity, Batch{logits, labels}).value.item<double>() ==
        DiceLoss{}(identity, Batch{logits.narrow(0, 0, 2), labels.narrow(0, 0, 2)})
            .value.item<double>());
}

TEST_CASE("what does not fit is an error with the numbers") {
  Identity identity;
  CHECK(says(
      text_of([&] { DiceLoss{}(identity, Batch{at::zeros({4, 3}), at::zeros({5}, at::kLong)}); }),
      "(DiceLoss): logits are [4, 3] Float, labels are [5] Long"));
  CHECK(
      says(text_of([&] { DiceLoss{.smooth = 0}(identity, Batch{at::zeros({4}), at::zeros({4})}); }),
           "Set it above 0"));
}

}  // namespace frugal_test::losses_dice_loss
