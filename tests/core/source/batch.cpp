// SPDX-License-Identifier: Apache-2.0
#include "data/sources.hpp"

#include <doctest/doctest.h>

#include <frugal/core/source/batch.hpp>

#include <torch/data/example.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace frugal_test::data_batch {

using frugal::Batch;
using frugal::batch_traits;

TEST_CASE("a batch counts its samples by its data and its tokens by its target") {
  Batch const batch{at::zeros({4, 7}), at::zeros({4, 3})};
  CHECK(batch_traits<Batch>::samples(batch) == 4);
  CHECK(batch_traits<Batch>::tokens(batch) == 12);
}

TEST_CASE("a bare tensor is a batch whose elements are tokens") {
  at::Tensor const batch = at::zeros({4, 7});
  CHECK(batch_traits<at::Tensor>::samples(batch) == 4);
  CHECK(batch_traits<at::Tensor>::tokens(batch) == 28);
}

TEST_CASE("placing a batch on its own device keeps its tensors") {
  Batch batch{at::zeros({2}), at::zeros({2})};
  Batch const before = batch;
  batch_traits<Batch>::to(batch, at::kCPU);
  CHECK(batch.data.is_same(before.data));
  CHECK(batch.target.is_same(before.target));
}

TEST_CASE("placing a batch moves both of its tensors, and a bare tensor itself") {
  Batch batch{at::zeros({2, 3}), at::zeros({2})};
  batch_traits<Batch>::to(batch, at::kMeta);
  CHECK(batch.data.is_meta());
  CHECK(batch.target.is_meta());
  at::Tensor bare = at::zeros({2});
  batch_traits<at::Tensor>::to(bare, at::kMeta);
  CHECK(bare.is_meta());
}

TEST_CASE("a part of a batch is a view of its samples") {
  Batch const batch{at::arange(12).view({6, 2}), at::arange(6)};
  Batch const part = batch_traits<Batch>::narrow(batch, 2, 3);
  CHECK(part.data.equal(at::arange(4, 10).view({3, 2})));
  CHECK(part.target.equal(at::arange(2, 5)));
  CHECK(part.data.storage().is_alias_of(batch.data.storage()));
  CHECK(batch_traits<at::Tensor>::narrow(batch.data, 5, 1).equal(at::arange(10, 12).view({1, 2})));
}

/// Has tensors `data` and `target`, and one that the traits do not know.
struct Hiding {
  at::Tensor data, target, mask;
};

/// The same, with its tensors declared.
struct Masked {
  at::Tensor data, target, mask;
  std::string note = "kept";
  void each_tensor(auto&& f) { f(data, target, mask); }
};

/// Declares its tensors, and counts in its own way.
struct Counted {
  at::Tensor rows;
};

struct Unknown {
  at::Tensor rows;
};

}  // namespace frugal_test::data_batch

template <>
struct frugal::batch_traits<frugal_test::data_batch::Counted> {
  using B = frugal_test::data_batch::Counted;
  static void each_tensor(auto& batch, auto&& f) { f(batch.rows); }
  static std::int64_t tokens(B const&) { return 77; }
};

namespace frugal_test::data_batch {

using frugal::batch_narrow;
using frugal::batch_samples;
using frugal::batch_to;
using frugal::batch_tokens;

TEST_CASE("a type whose batch_traits show its tensors has defaults for everything else") {
  Counted batch{at::arange(12).view({6, 2})};
  CHECK(batch_samples(batch) == 6);
  CHECK(batch_tokens(batch) == 77);
  CHECK(batch_narrow(batch, 4, 2).rows.equal(at::arange(8, 12).view({2, 2})));
  batch_to(batch, at::kMeta);
  CHECK(batch.rows.is_meta());
}

TEST_CASE("samples are the first dimension of the data, whatever holds it") {
  at::Tensor const x = at::zeros({4, 7}), y = at::zeros({4, 3});
  CHECK(batch_samples(std::pair{x, y}) == 4);
  CHECK(batch_samples(std::pair{std::tuple{x, at::zeros({7, 7})}, y}) == 4);
  CHECK(batch_samples(std::tuple{at::Tensor(), at::zeros({}), x}) == 4);
  CHECK(batch_samples(std::vector{x, y}) == 4);
  CHECK(batch_samples(Masked{x, y, y}) == 4);
  using Named = std::map<std::string, at::Tensor>;
  CHECK(batch_samples(Named{{"causal", at::zeros({7, 7})}, {"input_ids", x}}) == 4);
  CHECK(batch_samples(Named{{"a", x}, {"b", at::zeros({9})}}) == 4);
}

TEST_CASE("tokens are the elements of the target, or of the data without a target") {
  at::Tensor const x = at::zeros({4, 7}), y = at::zeros({4, 3});
  CHECK(batch_tokens(std::pair{x, y}) == 12);
  CHECK(batch_tokens(std::tuple{x}) == 28);
  CHECK(batch_tokens(std::vector{x, y}) == 12);
  CHECK(batch_tokens(std::vector{x}) == 28);
  CHECK(batch_tokens(Masked{x, y, x}) == 12);
  CHECK(batch_tokens(torch::data::TensorExample{x}) == 28);
  using Named = std::map<std::string, at::Tensor>;
  CHECK(batch_tokens(Named{{"input_ids", x}, {"labels", y}}) == 12);
  CHECK(batch_tokens(Named{{"data", x}, {"a", y}}) == 28);
  CHECK(batch_tokens(Named{{"a", y}, {"b", x}}) == 12);
}

TEST_CASE("every tensor of a batch is placed, and an undefined one stays undefined") {
  std::map<std::string, std::vector<at::Tensor>> batch{{"a", {at::zeros({2}), at::Tensor()}},
                                                       {"b", {at::zeros({2})}}};
  batch_to(batch, at::kMeta);
  CHECK(batch["a"][0].is_meta());
  CHECK_FALSE(batch["a"][1].defined());
  CHECK(batch["b"][0].is_meta());
}

TEST_CASE("placing a batch of any type on its own device dispatches nothing") {
  std::tuple batch{at::zeros({2}), std::vector{at::zeros({2})}};
  at::Tensor const before = std::get<1>(batch)[0];
  CHECK(frugal_test::data_sources::operators_of([&] { batch_to(batch, at::kCPU); }).empty());
  CHECK(std::get<1>(batch)[0].is_same(before));
}

TEST_CASE("a part of a batch of any type has that part of every tensor, and the rest unchanged") {
  at::Tensor const six = at::arange(6);
  Masked const part = batch_narrow(Masked{six.view({6, 1}), six, {}, "mine"}, 2, 3);
  CHECK(part.data.equal(at::arange(2, 5).view({3, 1})));
  CHECK(part.target.equal(at::arange(2, 5)));
  CHECK_FALSE(part.mask.defined());
  CHECK(part.note == "mine");
  auto const [x, y] = batch_narrow(std::pair{six, std::vector{six * 10}}, 4, 2);
  CHECK(x.equal(at::arange(4, 6)));
  CHECK(y[0].equal(at::tensor({40, 50})));
}

TEST_CASE("a tensor that does not count the samples is not split, and the error says which it is") {
  std::tuple const wrong{at::zeros({4, 2}), at::zeros({4}), at::zeros({7, 3})};
  CHECK_THROWS_WITH_AS(batch_narrow(wrong, 0, 2),
                       "frugal: tensor 2 of the batch cannot be split by samples (tensor 2, "
                       "[7, 3] Float): its first dimension is 7, and the batch has 4 samples. "
                       "Specialise batch_traits<B>::narrow(batch, begin, count) for this batch "
                       "type.",
                       frugal::ShapeError);
  std::pair const scalar{at::zeros({4, 2}), at::zeros({})};
  CHECK_THROWS_WITH_AS(batch_narrow(scalar, 0, 2),
                       "frugal: tensor 1 of the batch cannot be split by samples (tensor 1, [] "
                       "Float): it has no dimension, and the batch has 4 samples. Specialise "
                       "batch_traits<B>::narrow(batch, begin, count) for this batch type.",
                       frugal::ShapeError);
}

TEST_CASE("a batch of scalars has no samples to count") {
  CHECK_THROWS_AS(batch_samples(std::pair{at::zeros({}), at::Tensor()}), frugal::ShapeError);
}

TEST_CASE("a batch with unknown members is not split") {
  CHECK(frugal::Splittable<Batch>);
  CHECK(frugal::Splittable<at::Tensor>);
  CHECK(frugal::Splittable<Masked>);
  CHECK(frugal::Splittable<torch::data::Example<>>);
  CHECK(frugal::Splittable<std::map<std::string, at::Tensor>>);
  CHECK_FALSE(frugal::Splittable<Hiding>);
  CHECK_FALSE(frugal::Splittable<Unknown>);
}

}  // namespace frugal_test::data_batch
