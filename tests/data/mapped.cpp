// SPDX-License-Identifier: Apache-2.0
#include "sources.hpp"

#include <doctest/doctest.h>

#include <frugal/data/loading/prefetch.hpp>
#include <frugal/data/mapped.hpp>
#include <frugal/data/tensor_dataset.hpp>

#include <stdexcept>

namespace frugal_test::data_mapped {

using namespace frugal_test::data_sources;
using frugal::Batch;
using frugal::Mapped;
using frugal::ScaleBytes;
using frugal::TensorDataset;

TensorDataset bytes() {
  return TensorDataset(at::arange(512, at::kInt).remainder(256).to(at::kByte).view({128, 2, 2}),
                       at::arange(128), {.batch = 24});
}

TEST_CASE("scaled bytes have the bits of a set that was scaled whole") {
  TensorDataset plain(bytes().data().to(at::kFloat).div_(255), bytes().target(), {.batch = 24});
  Mapped scaled(bytes(), ScaleBytes{});
  for (auto cursor :
       {frugal::Cursor{.seed = 3}, frugal::Cursor{.seed = 3, .epoch = 1, .position = 48}}) {
    plain.seek(cursor);
    scaled.seek(cursor);
    int batches = 0;
    while (auto expected = plain.next()) {
      auto const found = scaled.next();
      REQUIRE(found);
      CHECK(at::equal(found->data, expected->data));
      CHECK(at::equal(found->target, expected->target));
      ++batches;
    }
    CHECK(batches == (cursor.position == 0 ? 6 : 4));
    CHECK_FALSE(scaled.next());
  }
}

TEST_CASE("a function may write into its batch: the set stays as it is in later epochs") {
  at::Tensor const data = at::arange(12, at::kFloat).view({6, 2});
  for (bool const shuffle : {false, true}) {
    Mapped doubled(TensorDataset(data, at::arange(6), {.batch = 4, .shuffle = shuffle}),
                   [](Batch batch) {
                     batch.data.mul_(2);
                     return batch;
                   });
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      doubled.seek({.epoch = epoch});
      while (auto const batch = doubled.next()) {
        CHECK(at::equal(batch->data, data.index_select(0, batch->target) * 2));
      }
    }
  }
  CHECK(at::equal(data, at::arange(12, at::kFloat).view({6, 2})));
}

TEST_CASE("floats are scaled as bytes are, and the set is not changed") {
  at::Tensor const data = at::arange(6, at::kFloat).view({6, 1});
  Mapped scaled(TensorDataset(data, at::arange(6), {.batch = 6, .shuffle = false}), ScaleBytes{});
  CHECK(at::equal(scaled.next()->data, data / 255));
  CHECK(at::equal(data, at::arange(6, at::kFloat).view({6, 1})));
}

TEST_CASE("it can be paused, and is waited for, if its source is") {
  using frugal::Prefetch;
  static_assert(frugal::PausableSource<Mapped<Prefetch<TensorDataset>, ScaleBytes>>);
  static_assert(frugal::WaitedSource<Mapped<Prefetch<TensorDataset>, ScaleBytes>>);
  static_assert(!frugal::PausableSource<Mapped<TensorDataset, ScaleBytes>>);
  Mapped scaled(Prefetch(bytes()), ScaleBytes{});
  scaled.seek({});
  CHECK(scaled.next().has_value());
  CHECK(scaled.pause());
  scaled.resume();
  int more = 0;
  while (scaled.next()) ++more;
  CHECK(more == 5);
}

TEST_CASE("a function may change the type of the batch") {
  Mapped data_alone(bytes(), [](Batch batch) { return batch.data; });
  static_assert(std::is_same_v<frugal::batch_of<decltype(data_alone)>, at::Tensor>);
  CHECK(data_alone.next()->sizes() == at::IntArrayRef{24, 2, 2});
}

TEST_CASE("it has a size if its source has one") {
  struct Stream {
    void seek(frugal::Cursor const&) {}
    std::optional<Batch> next() { return std::nullopt; }
  };
  static_assert(frugal::SizedSource<Mapped<TensorDataset, ScaleBytes>>);
  static_assert(frugal::Source<Mapped<Stream, ScaleBytes>>);
  static_assert(!frugal::SizedSource<Mapped<Stream, ScaleBytes>>);
  Mapped const scaled(bytes(), ScaleBytes{});
  CHECK(scaled.samples() == 128);
  CHECK(scaled.batches() == 6);
}

TEST_CASE("exceptions of the function leave next, and the source has moved on") {
  int calls = 0;
  Mapped picky(bytes(), [&calls](Batch batch) {
    if (++calls == 2) throw std::domain_error("no such image");
    return batch;
  });
  picky.seek({});
  CHECK(picky.next());
  CHECK_THROWS_AS(picky.next(), std::domain_error);
  CHECK(picky.next());
}

TEST_CASE("inside a prefetch it gives the same batches") {
  Mapped plain(bytes(), ScaleBytes{});
  frugal::Prefetch ahead(Mapped(bytes(), ScaleBytes{}));
  plain.seek({.seed = 9});
  ahead.seek({.seed = 9});
  while (auto expected = plain.next()) CHECK(at::equal(ahead.next()->data, expected->data));
  CHECK_FALSE(ahead.next());
}

}  // namespace frugal_test::data_mapped
