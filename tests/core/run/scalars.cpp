// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/objective.hpp>

#include <string>
#include <utility>
#include <vector>

namespace frugal_test::run_scalars {

using frugal::Loss;
using frugal::Scalars;

std::vector<std::string> names(Scalars const& scalars) {
  std::vector<std::string> all;
  for (Scalars::Value const& each : scalars) all.push_back(each.name);
  return all;
}

TEST_CASE("a loss takes scalars in braces: tensors, and numbers of every type") {
  Loss const loss{.value = at::ones({}), .scalars = {{"kl", at::ones({})}, {"beta", 2}}};
  CHECK(names(loss.scalars) == std::vector<std::string>{"kl", "beta"});
  CHECK_FALSE(loss.scalars.begin()->is_number);
  CHECK((loss.scalars.begin() + 1)->number == 2.0);
  CHECK(Loss{.value = at::ones({})}.scalars.empty());
  CHECK(Scalars(std::initializer_list<Scalars::Value>{}).empty());
}

TEST_CASE("a scalar holds no graph") {
  at::Tensor const weight = at::ones({}).requires_grad_();
  Scalars const scalars{{"kl", weight * 2}};
  CHECK_FALSE(scalars.begin()->tensor.requires_grad());
}

TEST_CASE("a copy is another list, and a clone has other tensors") {
  Scalars const scalars{{"kl", at::ones({})}};
  Scalars copy = scalars;
  copy.add({"beta", 1});
  CHECK(names(scalars) == std::vector<std::string>{"kl"});
  Scalars const clone = scalars.clone();
  scalars.begin()->tensor.fill_(3);
  CHECK(copy.begin()->tensor.item<double>() == 3);
  CHECK(clone.begin()->tensor.item<double>() == 1);
  copy = scalars;
  CHECK(names(copy) == std::vector<std::string>{"kl"});
  Scalars const moved = std::move(copy);
  CHECK(names(moved) == std::vector<std::string>{"kl"});
}

TEST_CASE("without scalars a loss has a pointer more, and no list") {
  CHECK(sizeof(Scalars) == sizeof(void*));
}

}  // namespace frugal_test::run_scalars
