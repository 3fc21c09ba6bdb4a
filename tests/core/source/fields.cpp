// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>

#include <torch/data/example.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace frugal_test::data_fields {

using at::Tensor;
using frugal::batch_data;
using frugal::batch_target;
using frugal::HasData;
using frugal::HasTarget;

template <class B>
void check_first_and_second(B const& batch, Tensor const& data, Tensor const& target) {
  CHECK(batch_data(batch).is_same(data));
  CHECK(batch_target(batch).is_same(target));
}

TEST_CASE("data and target are members of these names, or the first and the second") {
  Tensor const x = at::zeros({2}), y = at::ones({2});
  check_first_and_second(frugal::Batch{x, y}, x, y);
  check_first_and_second(torch::data::Example<>{x, y}, x, y);
  check_first_and_second(std::pair{x, y}, x, y);
  check_first_and_second(std::tuple{x, y, at::zeros({9})}, x, y);
  check_first_and_second(std::array{x, y}, x, y);
  check_first_and_second(std::vector{x, y}, x, y);
}

TEST_CASE("data and target of a map are the entries of these names, or input_ids and labels") {
  Tensor const x = at::zeros({2}), y = at::ones({2}), mask = at::ones({2});
  using Named = std::map<std::string, Tensor>;
  using Hashed = std::unordered_map<std::string, Tensor>;
  using Viewed = std::map<std::string_view, Tensor, std::less<>>;
  check_first_and_second(Named{{"target", y}, {"data", x}, {"a", mask}}, x, y);
  check_first_and_second(Hashed{{"labels", y}, {"attention_mask", mask}, {"input_ids", x}}, x, y);
  check_first_and_second(Viewed{{"labels", y}, {"input_ids", x}}, x, y);
  check_first_and_second(Named{{"data", x}, {"input_ids", mask}, {"target", y}, {"labels", mask}},
                         x, y);
}

TEST_CASE("a bare tensor is its own data and has no target, nor has an example without one") {
  Tensor const x = at::zeros({2});
  CHECK(batch_data(x).is_same(x));
  CHECK(batch_data(torch::data::TensorExample{x}).is_same(x));
  CHECK(HasData<Tensor>);
  CHECK_FALSE(HasTarget<Tensor>);
  CHECK_FALSE(HasTarget<torch::data::TensorExample>);
  CHECK_FALSE(HasTarget<std::tuple<Tensor>>);
  CHECK_FALSE(HasTarget<std::array<Tensor, 1>>);
}

TEST_CASE("data of several tensors is given unchanged") {
  Tensor const ids = at::zeros({2}), mask = at::ones({2}), y = at::ones({2});
  std::pair const batch{std::tuple{ids, mask}, y};
  CHECK(std::get<1>(batch_data(batch)).is_same(mask));
  CHECK(batch_target(batch).is_same(y));
}

TEST_CASE("a batch without such parts has none") {
  struct Rows {
    Tensor rows;
  };
  CHECK_FALSE(HasData<Rows>);
  CHECK_FALSE(HasData<int>);
  CHECK_FALSE(HasData<std::string>);
  CHECK_FALSE(HasData<std::map<int, Tensor>>);
}

TEST_CASE("a map without these entries is an error that lists its keys, a short list too") {
  std::map<std::string, Tensor> const batch{{"ids", at::zeros({2})}, {"mask", at::zeros({2})}};
  CHECK_THROWS_WITH_AS(batch_data(batch),
                       "frugal: the batch has neither 'data' nor 'input_ids' (a map of 2): its "
                       "keys are 'ids', 'mask'. Name an entry so, or take an objective that reads "
                       "the batch itself.",
                       frugal::DataError);
  CHECK_THROWS_WITH_AS(batch_target(std::vector{at::zeros({2})}),
                       "frugal: the batch has no target (a list of 1): the first of a list is the "
                       "data, the second the target. Give the list 2 entries, or take an "
                       "objective that reads the batch itself.",
                       frugal::DataError);
}

}  // namespace frugal_test::data_fields
