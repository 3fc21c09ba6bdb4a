// SPDX-License-Identifier: Apache-2.0
#include "sources.hpp"

#include <doctest/doctest.h>

#include <frugal/data/tensor_dataset.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::data_resident {

using namespace frugal_test::data_sources;
using frugal::Batch;
using frugal::TensorDataset;

static_assert(frugal::SizedSource<TensorDataset>);
static_assert(std::is_same_v<frugal::batch_of<TensorDataset>, Batch>);

TEST_CASE("a resident source gives every sample of an epoch once, data and target together") {
  TensorDataset source(numbered(103), {.batch = 10});
  auto samples = samples_in(epoch_of(source, {.seed = 5, .epoch = 3}));
  REQUIRE(samples.size() == 103);
  std::sort(samples.begin(), samples.end());
  for (std::int64_t i = 0; i < 103; ++i) CHECK(samples[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("a resident source knows its samples and batches") {
  CHECK(TensorDataset(numbered(103), {.batch = 10}).samples() == 103);
  CHECK(TensorDataset(numbered(103), {.batch = 10}).batches() == 11);
  CHECK(TensorDataset(numbered(103), {.batch = 10, .drop_last = true}).batches() == 10);
}

TEST_CASE("the last resident batch is ragged, or left out by drop_last") {
  TensorDataset ragged(numbered(10), {.batch = 4});
  auto const batches = rest(ragged);
  REQUIRE(batches.size() == 3);
  CHECK(batches[0].data.sizes() == at::IntArrayRef({4, 2, 3}));
  CHECK(batches[2].data.sizes() == at::IntArrayRef({2, 2, 3}));
  CHECK(batches[2].target.sizes() == at::IntArrayRef({2}));
  TensorDataset dropped(numbered(10), {.batch = 4, .drop_last = true});
  CHECK(rest(dropped).size() == 2);
}

TEST_CASE("a resident source resumes at any sample with the rest of the epoch") {
  TensorDataset source(numbered(50), {.batch = 8});
  auto const whole = samples_in(epoch_of(source, {.seed = 1, .epoch = 2}));
  for (std::uint64_t const position : {0U, 8U, 13U, 47U, 49U, 50U}) {
    auto const tail = samples_in(epoch_of(source, {.seed = 1, .epoch = 2, .position = position}));
    CHECK(tail == std::vector(whole.begin() + static_cast<std::ptrdiff_t>(position), whole.end()));
  }
}

TEST_CASE("a resident source without a seek is at the start of epoch 0 of seed 0") {
  TensorDataset fresh(numbered(20));
  TensorDataset sought(numbered(20));
  CHECK(same(rest(fresh), epoch_of(sought, {})));
}

TEST_CASE("the resident order is independent of the batch size and differs between epochs") {
  TensorDataset by_three(numbered(50), {.batch = 3});
  TensorDataset by_fifty(numbered(50), {.batch = 50});
  CHECK(samples_in(epoch_of(by_three, {.seed = 1})) == samples_in(epoch_of(by_fifty, {.seed = 1})));
  CHECK(samples_in(epoch_of(by_three, {.seed = 1})) !=
        samples_in(epoch_of(by_three, {.seed = 1, .epoch = 1})));
}

TEST_CASE("without shuffling, resident batches are views that copy nothing") {
  Batch const set = numbered(10);
  TensorDataset source(set, {.batch = 4, .shuffle = false});
  auto const batches = rest(source);
  REQUIRE(batches.size() == 3);
  CHECK(batches[1].data.is_alias_of(set.data));
  CHECK(batches[1].data.is_contiguous());
  CHECK(samples_in(batches) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("resident batches are bit for bit those of index_select, whatever the memory format") {
  at::manual_seed(1);
  Batch const contiguous{at::randn({40, 3, 4, 5}), at::randint(10, {40})};
  Batch const channels_last{contiguous.data.contiguous(at::MemoryFormat::ChannelsLast),
                            contiguous.target};
  Batch const part{at::cat({contiguous.data, contiguous.data}, 1).slice(1, 0, 3),
                   contiguous.target};
  Batch const offset{at::cat({contiguous.data, contiguous.data}).slice(0, 40), contiguous.target};
  for (Batch const& set : {contiguous, channels_last, part, offset}) {
    for (bool const shuffle : {true, false}) {
      TensorDataset source(set, {.batch = 16, .shuffle = shuffle});
      auto const batches = epoch_of(source, {.seed = 6});
      std::vector<std::int64_t> order(40);
      frugal::Permutation(6, 0, 40).fill(0, std::span(order));
      if (!shuffle) std::iota(order.begin(), order.end(), 0);
      auto const index = at::tensor(order);
      std::vector<Batch> wanted;
      for (std::int64_t first = 0; first < 40; first += 16) {
        auto const part_index = index.slice(0, first, first + 16);
        wanted.push_back({contiguous.data.index_select(0, part_index),
                          contiguous.target.index_select(0, part_index)});
      }
      CHECK(same(batches, wanted));
    }
  }
}

TEST_CASE("rows without elements and rows of bytes are gathered too") {
  TensorDataset none({at::zeros({5, 0}), at::zeros({5})}, {.batch = 2});
  CHECK(none.next()->data.sizes() == at::IntArrayRef({2, 0}));
  TensorDataset bytes({at::arange(9, at::kByte).view({3, 3}), at::zeros({3})}, {.batch = 3});
  auto const batch = bytes.next();
  CHECK(batch->data.sum().item<std::int64_t>() == 36);
}

TEST_CASE("batches already given do not change while later ones are made") {
  TensorDataset source(numbered(40), {.batch = 8});
  auto const kept = epoch_of(source, {.seed = 3});
  auto const before = samples_in(kept);
  rest(source);
  epoch_of(source, {.seed = 4});
  CHECK(samples_in(kept) == before);
}

TEST_CASE("a copy of a resident source is independent") {
  TensorDataset first(numbered(40), {.batch = 8});
  first.seek({.seed = 3});
  first.next();
  TensorDataset second = first;
  first.seek({.seed = 9});
  auto const wanted = [] {
    TensorDataset alone(numbered(40), {.batch = 8});
    return epoch_of(alone, {.seed = 3, .position = 8});
  }();
  std::vector<Batch> got;
  while (auto batch = second.next()) {
    first.next();
    got.push_back(*batch);
  }
  CHECK(same(got, wanted));
}

TEST_CASE("a shuffled resident batch costs one allocating operator per tensor and no other") {
  TensorDataset source(numbered(64), {.batch = 8});
  source.next();
  auto const names = operators_of([&] { source.next(); });
  CHECK(names == std::vector<std::string>{"aten::empty", "aten::empty"});
}

TEST_CASE("an unshuffled resident batch costs one view per tensor and no other operator") {
  TensorDataset source(numbered(64), {.batch = 8, .shuffle = false});
  auto const names = operators_of([&] { source.next(); });
  CHECK(names == std::vector<std::string>{"aten::as_strided", "aten::as_strided"});
}

TEST_CASE("resident tensors that require gradients give batches that do not") {
  Batch set = numbered(10);
  set.data.requires_grad_();
  TensorDataset source(set, {.batch = 4});
  CHECK_FALSE(source.next()->data.requires_grad());
  CHECK(set.data.requires_grad());
}

TEST_CASE("tensors that differ in length are refused with both shapes") {
  CHECK_THROWS_WITH_AS(TensorDataset(at::zeros({10, 4}), at::zeros({9})),
                       "frugal: data and target differ in length (data [10, 4] Float, target [9] "
                       "Float): the first dimension "
                       "counts samples in both. Give one target per sample.",
                       frugal::ShapeError);
}

TEST_CASE("undefined tensors and tensors without a first dimension are refused") {
  CHECK_THROWS_AS(TensorDataset(at::Tensor(), at::zeros({9})), frugal::ShapeError);
  CHECK_THROWS_AS(TensorDataset(at::zeros({9}), at::Tensor()), frugal::ShapeError);
  CHECK_THROWS_AS(TensorDataset(at::zeros({}), at::zeros({})), frugal::ShapeError);
}

TEST_CASE("tensors on two devices are refused") {
  auto const meta = at::zeros({9}, at::device(at::kMeta));
  CHECK_THROWS_AS(TensorDataset(at::zeros({9}), meta), frugal::DataError);
}

TEST_CASE("a resident set without samples is refused as empty") {
  CHECK_THROWS_AS(TensorDataset(at::zeros({0, 4}), at::zeros({0})), frugal::EmptySourceError);
}

}  // namespace frugal_test::data_resident
