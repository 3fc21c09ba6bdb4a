// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/libtorch/finite.hpp>

#include "support/running.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace frugal_test::libtorch_finite {

using frugal::detail::first_non_finite;
using frugal::detail::non_finite_flag;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// What both ways to look at a tensor say, which must be the same.
bool bad(at::Tensor const& tensor) {
  bool const found = first_non_finite({tensor}).has_value();
  CHECK(non_finite_flag({tensor}).item<bool>() == found);
  return found;
}

TEST_CASE("a NaN and an infinity are found at any place of a tensor of any length and type") {
  for (auto const type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    for (std::int64_t const size : {1, 7, 16, 33, 64, 100}) {
      at::Tensor const fine = at::arange(size, at::kFloat).to(type);
      CHECK_FALSE(bad(fine));
      for (std::int64_t at = 0; at < size; at += 3) {
        for (double const value : {nan, infinity, -infinity}) {
          at::Tensor const changed = fine.clone();
          changed[at] = value;
          CHECK(bad(changed));
        }
      }
    }
  }
}

TEST_CASE("a long tensor is read to its end, and need not be") {
  at::Tensor const many = at::zeros({300'000});
  CHECK_FALSE(bad(many));
  many[299'999] = nan;
  CHECK(bad(many));
  many[0] = infinity;
  CHECK(bad(many));
}

TEST_CASE("the largest and the smallest numbers of a type are finite, although squares overflow") {
  auto const limits = []<class T>(T) {
    using Limits = std::numeric_limits<T>;
    return at::tensor({Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min()});
  };
  CHECK_FALSE(bad(limits(1.0F)));
  CHECK_FALSE(bad(limits(1.0)));
  CHECK_FALSE(bad(at::full({20}, 65504.0, at::kHalf)));
  CHECK_FALSE(bad(at::full({20}, 3e38, at::kBFloat16)));
}

TEST_CASE("numbers of 8 bits are looked at as floats") {
  at::Tensor const small = at::ones({9}).to(at::kFloat8_e5m2);
  CHECK_FALSE(bad(small));
  CHECK(bad(at::full({9}, infinity).to(at::kFloat8_e5m2)));
}

TEST_CASE("tensors without such numbers are finite: integers, booleans, empty and undefined ones") {
  CHECK_FALSE(bad(at::full({4}, std::numeric_limits<std::int64_t>::max(), at::kLong)));
  CHECK_FALSE(bad(at::ones({4}, at::kBool)));
  CHECK_FALSE(bad(at::empty({0, 3})));
  CHECK_FALSE(first_non_finite({at::Tensor()}));
  CHECK_FALSE(first_non_finite({}));
  CHECK_FALSE(non_finite_flag({}).item<bool>());
}

TEST_CASE("both parts of complex numbers count") {
  at::Tensor const parts = at::ones({5, 2});
  CHECK_FALSE(bad(at::view_as_complex(parts)));
  parts[3][1] = nan;
  CHECK(bad(at::view_as_complex(parts)));
  CHECK(bad(at::view_as_complex(parts).conj()));
}

TEST_CASE("the stored values of a sparse tensor count") {
  at::Tensor const places = at::tensor({1, 4, 4}, at::kLong).unsqueeze(0);
  auto const sparse = [&](double value) {
    return at::sparse_coo_tensor(places, at::tensor({1.0, value, 2.0}), {8});
  };
  CHECK_FALSE(bad(sparse(3)));
  CHECK(bad(sparse(infinity)));
}

TEST_CASE("what lies between the elements of a view does not count") {
  at::Tensor const table = at::zeros({6, 4});
  table.select(1, 2).fill_(nan);
  CHECK_FALSE(bad(table.select(1, 1)));
  CHECK_FALSE(bad(table.narrow(1, 0, 2)));
  CHECK(bad(table.narrow(1, 1, 2)));
  CHECK(bad(table.t()));
}

TEST_CASE("the first of several tensors is found, of any types together") {
  at::Tensor const fine = at::ones({3});
  at::Tensor const wrong = at::full({3}, nan, at::kDouble);
  CHECK(first_non_finite({fine, at::ones({2}, at::kLong), wrong, wrong}) == std::optional(2UL));
  CHECK_FALSE(first_non_finite({fine, fine}));
  CHECK(non_finite_flag({fine, at::ones({2}, at::kLong), wrong}).item<bool>());
}

TEST_CASE("host memory is read without an operator, and a flag without a look at its value") {
  std::vector<at::Tensor> const tensors{at::ones({40}), at::ones({3}), at::full({4}, nan)};
  auto const direct = support::operators_of([&] { first_non_finite(tensors); });
  CHECK(direct.empty());
  auto const flagged = support::operators_of([&] { non_finite_flag(tensors); });
  CHECK(flagged.at("aten::_foreach_norm") == 1);
  CHECK_FALSE(flagged.contains("aten::item"));
  CHECK_FALSE(flagged.contains("aten::_local_scalar_dense"));
}

}  // namespace frugal_test::libtorch_finite
