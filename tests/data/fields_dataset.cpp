// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/data/fields_dataset.hpp>

#include <string>
#include <vector>

namespace frugal_test::data_fields_dataset {

using frugal::FieldsBatch;
using frugal::FieldsDataset;
using frugal::LoaderOptions;

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

}  // namespace frugal_test::data_fields_dataset
