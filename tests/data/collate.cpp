// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/data/collate.hpp>

#include <torch/data/example.h>

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace frugal_test::data_collate {

using frugal::Stack;

at::Tensor const a = at::arange(3), b = at::arange(3, 6);
at::Tensor both() { return at::arange(6).view({2, 3}); }

TEST_CASE("tensors are stacked, and so are the sides of examples") {
  CHECK(Stack{}(std::vector{a, b}).equal(both()));
  frugal::Batch const batch = Stack{}(std::vector<torch::data::Example<>>{{a, b}, {b, a}});
  CHECK(batch.data.equal(both()));
  CHECK(batch.target.equal(both().flip(0)));
  CHECK(Stack{}(std::vector<torch::data::TensorExample>{a, b}).equal(both()));
}

TEST_CASE("pairs, tuples, arrays and maps of samples become such batches") {
  auto const [x, y] = Stack{}(std::vector{std::pair{a, b}, std::pair{b, a}});
  CHECK(x.equal(both()));
  CHECK(y.equal(both().flip(0)));
  auto const tuple = Stack{}(std::vector{std::tuple{a, std::pair{b, b}}});
  CHECK(std::get<1>(tuple).second.equal(b.unsqueeze(0)));
  std::array<at::Tensor, 2> const array = Stack{}(std::vector{std::array{a, b}});
  CHECK(array[1].equal(b.unsqueeze(0)));
  using Hashed = std::unordered_map<std::string, at::Tensor>;
  std::map<std::string, at::Tensor> const named =
      Stack{}(std::vector<Hashed>{{{"x", a}, {"y", b}}, {{"y", a}, {"x", b}}});
  CHECK(named.at("x").equal(both()));
  CHECK(named.at("y").equal(both().flip(0)));
}

TEST_CASE("numbers become a tensor: integers int64, others of their own type") {
  auto const batch =
      Stack{}(std::vector{std::tuple{a, 1, 0.5F, true}, std::tuple{b, -2, 1.5F, false}});
  CHECK(std::get<1>(batch).equal(at::tensor({1, -2}, at::kLong)));
  CHECK(std::get<2>(batch).equal(at::tensor({0.5F, 1.5F})));
  CHECK(std::get<3>(batch).equal(at::tensor({1, 0}, at::kLong)));
  frugal::Batch const classes =
      Stack{}(std::vector<torch::data::Example<at::Tensor, int>>{{a, 4}, {b, 5}});
  CHECK(classes.target.equal(at::tensor({4, 5}, at::kLong)));
}

TEST_CASE("samples of unlike shape or type are refused with both, and with the sample's number") {
  std::array<std::size_t, 2> const indices{8, 3};
  CHECK_THROWS_WITH_AS(Stack{}(std::vector{std::pair{a, a}, std::pair{a, at::arange(2)}}, indices),
                       "frugal: samples of one batch differ in shape (entry 1 of sample 3): it is "
                       "[2] Long, and that of sample 8 is [3] Long. Give samples of one shape, or "
                       "pad them with Pad{}.",
                       frugal::ShapeError);
  CHECK_THROWS_AS(Stack{}(std::vector{a, a.to(at::kFloat)}), frugal::DataError);
  CHECK_THROWS_AS(Stack{}(std::vector{a, at::Tensor()}), frugal::DataError);
}

TEST_CASE("maps of unlike keys are refused") {
  using Named = std::map<std::string, at::Tensor>;
  CHECK_THROWS_WITH_AS(Stack{}(std::vector<Named>{{{"x", a}}, {{"y", a}}}),
                       "frugal: samples of one batch differ in their keys (sample 1 of the batch): "
                       "it has 1 entries, and sample 0 of the batch has 1, among them 'x'. Give "
                       "every sample the same keys.",
                       frugal::DataError);
  CHECK_THROWS_AS(Stack{}(std::vector<Named>{{{"x", a}}, {{"x", a}, {"y", a}}}), frugal::DataError);
}

TEST_CASE("what holds anything else is not stacked") {
  CHECK(frugal::detail::Stackable<std::pair<at::Tensor, int>>);
  CHECK_FALSE(frugal::detail::Stackable<std::pair<at::Tensor, std::string>>);
  CHECK_FALSE(frugal::detail::Stackable<std::vector<at::Tensor>>);
}

TEST_CASE("samples with fields become one batch with fields") {
  std::vector<frugal::FieldsBatch> samples{
      {.data = at::ones({2}), .target = at::zeros({}), .fields = {{"teacher", at::ones({3})}}},
      {.data = at::ones({2}), .target = at::zeros({}), .fields = {{"teacher", at::zeros({3})}}}};
  frugal::FieldsBatch const batch = frugal::Stack{}(samples);
  CHECK(batch.data.sizes() == at::IntArrayRef({2, 2}));
  CHECK(batch.target.sizes() == at::IntArrayRef({2}));
  CHECK(batch.field("teacher").sum(1).equal(at::tensor({3.F, 0.F})));
  samples[1].target = at::Tensor();
  CHECK_THROWS_AS(frugal::Stack{}(samples), frugal::DataError);
  samples[0].target = at::Tensor();
  CHECK_FALSE(frugal::Stack{}(samples).target.defined());
  samples[0].fields["other"] = at::ones({});
  CHECK_THROWS_AS(frugal::Stack{}(samples), frugal::DataError);
}

}  // namespace frugal_test::data_collate
