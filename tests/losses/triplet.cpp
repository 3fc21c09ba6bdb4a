// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/losses/triplet.hpp>

#include "cases.hpp"

namespace frugal_test::losses_triplet {

using namespace frugal_test::losses;
using frugal::Triplet;

TEST_CASE("Triplet is PyTorch's, values and gradients, of one batch and of a window") {
  int const compared = each_loss("Triplet", [](Json const& which) {
    check_like_pytorch(which, Triplet{.margin = which.at("margin"),
                                      .p = which.at("p"),
                                      .eps = which.at("eps"),
                                      .swap = which.at("swap")});
  });
  CHECK(compared == 3);
}

TEST_CASE(
    "its weight is the samples, its output the embeddings, and a margin or norm of 0 is refused") {
  Identity identity;
  Loss const loss = Triplet{}(identity, Batch{at::randn({4, 3, 5}), {}});
  CHECK(loss.weight == 4);
  CHECK((loss.output.sizes() == at::IntArrayRef({4, 3, 5})));
  for (Triplet const& wrong : {Triplet{.margin = 0}, Triplet{.p = 0}}) {
    CHECK(says(text_of([&] { wrong(identity, Batch{at::randn({4, 3, 5}), {}}); }),
               "Set both above 0"));
  }
  widens(Triplet{}, at::randn({4, 3, 5}), {});
}

}  // namespace frugal_test::losses_triplet
