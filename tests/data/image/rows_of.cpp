// SPDX-License-Identifier: Apache-2.0
#include "references.hpp"

#include <frugal/data/image/rows_of.hpp>

namespace frugal_test::image_rows_of {

using frugal::detail::change_rows;

at::Tensor negative(at::Tensor const& some) { return some.neg(); }

TEST_CASE("the given rows are changed, in a batch of their own") {
  at::Tensor const all = at::arange(8, at::kFloat).view({4, 2});
  at::Tensor const out = change_rows(all, {2, 0}, [](at::Tensor const& some) {
    CHECK(some.sizes() == at::IntArrayRef({2, 2}));
    CHECK(some[0][0].item<float>() == 4);
    return some.neg();
  });
  CHECK(at::equal(out, at::tensor({-0.F, -1.F, 2.F, 3.F, -4.F, -5.F, 6.F, 7.F}).view({4, 2})));
  CHECK(at::equal(all, at::arange(8, at::kFloat).view({4, 2})));
}

TEST_CASE("no rows are no copy, and all rows are the batch itself") {
  at::Tensor const all = at::ones({3, 2});
  CHECK(change_rows(all, {}, negative).is_same(all));
  change_rows(all, {0, 1, 2}, [&](at::Tensor const& some) {
    CHECK(some.is_same(all));
    return some.neg();
  });
}

}  // namespace frugal_test::image_rows_of
