// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/data/batch.hpp>

namespace frugal_test::data_batch {

using frugal::Batch;
using frugal::batch_traits;
using frugal::detail::shape_text;

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

TEST_CASE("placing a batch where it is keeps its tensors") {
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

TEST_CASE("a shape in a message has its sizes and its type") {
  CHECK(shape_text(at::zeros({32, 784})) == "[32, 784] Float");
  CHECK(shape_text(at::zeros({}, at::kLong)) == "[] Long");
  CHECK(shape_text(at::Tensor()) == "undefined");
}

TEST_CASE("a part of a batch is a view of its samples") {
  Batch const batch{at::arange(12).view({6, 2}), at::arange(6)};
  Batch const part = batch_traits<Batch>::narrow(batch, 2, 3);
  CHECK(part.data.equal(at::arange(4, 10).view({3, 2})));
  CHECK(part.target.equal(at::arange(2, 5)));
  CHECK(part.data.storage().is_alias_of(batch.data.storage()));
  CHECK(batch_traits<at::Tensor>::narrow(batch.data, 5, 1).equal(at::arange(10, 12).view({1, 2})));
}

/// Has the members that the general traits require, and one that they do not know.
struct Masked {
  at::Tensor data, target, mask;
};

TEST_CASE("of a batch type of one's own no part is taken unless it says how") {
  CHECK(frugal::Splittable<Batch>);
  CHECK(frugal::Splittable<at::Tensor>);
  CHECK_FALSE(frugal::Splittable<Masked>);
}

}  // namespace frugal_test::data_batch
