// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/tensor_dataset.hpp>

#include <frugal/error.hpp>

#include "sources.hpp"

#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::data_resident {

using namespace frugal_test::data_sources;
using frugal::Batch;
using frugal::FieldsBatch;
using frugal::FieldsDataset;
using frugal::LoaderOptions;
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

/// Row i of everything begins with i.
FieldsBatch set(std::int64_t n) {
  at::Tensor const row = at::arange(n);
  return {.data = row.unsqueeze(1).expand({n, 3}).contiguous(),
          .target = row,
          .fields = {{"teacher", row.unsqueeze(1).expand({n, 2}).to(at::kFloat).contiguous()},
                     {"transposed", at::stack({row, row}).t()}}};
}

std::vector<FieldsBatch> epoch(FieldsDataset& data, std::uint64_t number) {
  data.seek({.seed = 3, .epoch = number, .position = 0});
  std::vector<FieldsBatch> all;
  while (auto batch = data.next()) all.push_back(std::move(*batch));
  return all;
}

TEST_CASE("every sample keeps its fields, shuffled or not") {
  for (bool const shuffle : {false, true}) {
    FieldsDataset data(set(10), {.batch = 4, .shuffle = shuffle});
    CHECK(data.samples() == 10);
    CHECK(data.batches() == 3);
    std::vector<std::int64_t> seen;
    for (FieldsBatch const& batch : epoch(data, 1)) {
      at::Tensor const row = batch.target;
      CHECK(batch.data.equal(row.unsqueeze(1).expand_as(batch.data)));
      CHECK(batch.field("teacher").equal(row.unsqueeze(1).expand({-1, 2}).to(at::kFloat)));
      CHECK(batch.field("transposed").equal(row.unsqueeze(1).expand({-1, 2})));
      for (std::int64_t i = 0; i < row.numel(); ++i) seen.push_back(row[i].item<std::int64_t>());
    }
    REQUIRE(seen.size() == 10);
    std::vector<std::int64_t> sorted = seen;
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t i = 0; i < 10; ++i) CHECK(sorted[static_cast<std::size_t>(i)] == i);
    CHECK((seen != sorted) == shuffle);
  }
}

TEST_CASE("the order is that of a TensorDataset, and any position may be sought") {
  LoaderOptions const loading{.batch = 4};
  FieldsDataset data(set(10), loading);
  frugal::TensorDataset plain(set(10).data, set(10).target, loading);
  for (std::uint64_t const position : {0U, 4U, 8U}) {
    frugal::Cursor const cursor{.seed = 7, .epoch = 2, .position = position};
    data.seek(cursor);
    plain.seek(cursor);
    auto const batch = data.next();
    auto const same = plain.next();
    REQUIRE(batch);
    CHECK(batch->data.equal(same->data));
    CHECK(batch->target.equal(same->target));
  }
}

TEST_CASE("a set without targets has none in its batches") {
  FieldsBatch all = set(4);
  all.target = at::Tensor();
  FieldsDataset data(std::move(all), {.batch = 4, .shuffle = false});
  auto const batches = epoch(data, 0);
  CHECK_FALSE(batches.at(0).target.defined());
  CHECK(batches.at(0).field("teacher").size(0) == 4);
}

TEST_CASE("other bytes of a field are other data") {
  auto const identity = [](FieldsBatch of) {
    frugal::DataIdentity found;
    FieldsDataset(std::move(of), {.batch = 2}).identify(found);
    return found.values();
  };
  FieldsBatch other = set(4);
  other.fields["teacher"].add_(1);
  CHECK(identity(set(4)) == identity(set(4)));
  CHECK(identity(set(4)) != identity(other));
}

std::string refusal(FieldsBatch of) {
  try {
    FieldsDataset(std::move(of), {});
    return "not refused";
  } catch (frugal::Error const& error) {
    return error.fault().what;
  }
}

TEST_CASE("a field of another length, and one without samples, are refused by name") {
  FieldsBatch all = set(4);
  all.fields["teacher"] = at::ones({5, 2});
  CHECK(refusal(all) == "data and field 'teacher' differ in length");
  all.fields["teacher"] = at::ones({});
  CHECK(refusal(all) == "field 'teacher' has no first dimension to take samples from");
  all.fields["teacher"] = at::ones({4, 2}, at::TensorOptions(at::kMeta));
  CHECK(refusal(all) == "data and field 'teacher' are on two devices");
  all.data = at::Tensor();
  CHECK(refusal(all) == "data has no first dimension to take samples from");
}

TEST_CASE("a set that was moved from says so, and its copy has its samples") {
  TensorDataset set(numbered(4), {.batch = 2});
  TensorDataset moved = std::move(set);
  CHECK_THROWS_WITH_AS(set.next(), doctest::Contains("std::move has given them"),  // NOLINT
                       frugal::DataError);
  CHECK(moved.next()->data.size(0) == 2);
  FieldsBatch all;
  all.data = at::ones({4, 2});
  FieldsDataset fields(all, {.batch = 2});
  FieldsDataset const other = std::move(fields);
  CHECK_THROWS_AS(fields.next(), frugal::DataError);  // NOLINT
  CHECK(other.samples() == 4);
}

}  // namespace frugal_test::data_resident
