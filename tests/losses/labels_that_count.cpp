// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/losses/labels_that_count.hpp>

#include <cmath>

#include "cases.hpp"

namespace frugal_test::losses_labels_that_count {

using namespace frugal_test::losses;
using frugal::detail::labelled_logits;
using frugal::detail::LabelledLogits;

TEST_CASE("shapes say whether it is one logit per label or one per class") {
  CHECK(labelled_logits(at::zeros({4, 3}), at::zeros({4}, at::kLong), {}, "here").is_softmax);
  CHECK(labelled_logits(at::zeros({4, 3, 2}), at::zeros({4, 2}, at::kInt), {}, "here").is_softmax);
  CHECK_FALSE(
      labelled_logits(at::zeros({4, 3}), at::zeros({4, 3}, at::kLong), {}, "here").is_softmax);
  LabelledLogits const column =
      labelled_logits(at::zeros({4, 1}), at::zeros({4}, at::kBool), {}, "here");
  CHECK_FALSE(column.is_softmax);
  CHECK((column.logits.sizes() == at::IntArrayRef({4})));
}

TEST_CASE("labels of -100 and those outside of the mask do not count, and are 0") {
  at::Tensor const mask = at::tensor({1, 1, 0}).to(at::kBool);
  LabelledLogits const all =
      labelled_logits(at::zeros({3}), at::tensor({-100, 1, 1}), mask, "here");
  CHECK(all.labels.equal(at::tensor({0.0F, 1.0F, 0.0F})));
  CHECK(all.counts.equal(at::tensor({0, 1, 0}).to(at::kBool)));
  CHECK(frugal::detail::labels_that_count(Batch{}, at::tensor({-100, 1, 1}), mask, all.counts,
                                          false) == 1);
}

TEST_CASE("a label that is no class, or no share of one, is an error with the range") {
  auto const refused = [](at::Tensor const& logits, at::Tensor const& labels) {
    return text_of([&] { labelled_logits(logits, labels, {}, "here"); });
  };
  at::Tensor const mask = at::tensor({0, 255}).to(at::kByte);
  CHECK(says(refused(at::zeros({2}), mask), "labels are from 0.00 to 255.00 (here)"));
  CHECK(says(refused(at::zeros({2, 1}), at::tensor({1, -1})), "from -1.00 to 1.00"));
  CHECK(says(refused(at::zeros({2}), at::tensor({0.5, std::nan("")})), "nan (here)"));
  CHECK(says(refused(at::zeros({2, 3}), at::tensor({0, 3})), "the output has classes from 0 to 2"));
  CHECK(says(refused(at::zeros({2, 3}), at::tensor({0, -1})), "labels are from -1.00 to 0.00"));
  CHECK(refused(at::zeros({3}), at::tensor({-100.0, 0.3, 1.0})) == "none");
}

TEST_CASE("a label of one byte is never -100") {
  at::Tensor const bytes = at::tensor({156, 3}).to(at::kByte);
  LabelledLogits const all = labelled_logits(at::zeros({2, 200}), bytes, {}, "here");
  CHECK(all.counts.all().item<bool>());
  CHECK(all.labels.equal(at::tensor({156, 3}).to(at::kLong)));
}

}  // namespace frugal_test::losses_labels_that_count
