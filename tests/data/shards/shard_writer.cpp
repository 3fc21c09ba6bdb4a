// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/shards/shard_writer.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/data/shards/record_set.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace frugal_test::data_shards_shard_writer {

using frugal::Batch;
using frugal::RecordSet;
using frugal::ShardList;
using frugal::ShardWriter;
using frugal_test::support::TemporaryFolder;

TEST_CASE("shards end at their number of records, or of bytes") {
  TemporaryFolder const by_records, by_bytes, unbounded;
  ShardWriter records(by_records.path(), {.records_per_shard = 4, .bytes_per_shard = 0});
  ShardWriter bytes(by_bytes.path(), {.bytes_per_shard = 100});  // of 40 each
  ShardWriter all(unbounded.path(), {.bytes_per_shard = 0});
  for (int i = 0; i < 9; ++i) {
    at::Tensor const sample = at::full({10}, i, at::kFloat);
    records.add(sample);
    bytes.add(sample);
    all.add(sample);
  }
  auto const sizes = [](ShardList const& list) {
    std::vector<std::uint64_t> counts;
    for (auto const& shard : list.shards) counts.push_back(shard.records);
    return counts;
  };
  CHECK(sizes(records.close()) == std::vector<std::uint64_t>{4, 4, 1});
  CHECK(sizes(bytes.close()) == std::vector<std::uint64_t>{2, 2, 2, 2, 1});
  CHECK(sizes(all.close()) == std::vector<std::uint64_t>{9});
}

TEST_CASE("tensors with gaps, or that require a gradient, are stored as they read") {
  TemporaryFolder const folder;
  at::Tensor const wide = at::arange(12, at::kFloat).view({3, 4});
  ShardWriter writer(folder.path());
  writer.add(wide.t());
  writer.add(at::rand({4, 3}).set_requires_grad(true));
  writer.close();
  CHECK(at::equal(RecordSet<at::Tensor>(folder.path()).get(0), wide.t()));
}

TEST_CASE("a sample that differs names both, and is left out") {
  TemporaryFolder const folder;
  ShardWriter writer(folder.path());
  writer.add(Batch{at::zeros({2}), at::scalar_tensor(1, at::kLong)});
  CHECK_THROWS_WITH_AS(
      writer.add(Batch{at::zeros({3}), at::scalar_tensor(1, at::kLong)}),
      doctest::Contains("it is data [3] Float, target [] Long, and a record is data "
                        "F32 [2], target I64 []"),
      frugal::ShapeError);
  CHECK_THROWS_AS(writer.add(Batch{at::zeros({2}, at::kHalf), at::scalar_tensor(1, at::kLong)}),
                  frugal::DtypeError);
  CHECK_THROWS_AS(writer.add(at::zeros({2})), frugal::ShapeError);
  CHECK_THROWS_AS(writer.add(std::string("bytes")), frugal::ShapeError);
  CHECK_THROWS_AS(writer.add(Batch{at::zeros({2}), {}}), frugal::DataError);
  writer.add(Batch{at::ones({2}), at::scalar_tensor(2, at::kLong)});
  CHECK(writer.close().shards.front().records == 2);
}

TEST_CASE("what no record can hold is refused") {
  TemporaryFolder const folder;
  ShardWriter writer(folder.path());
  CHECK_THROWS_AS(writer.add(at::zeros({2}, at::kComplexDouble)), frugal::DtypeError);
  CHECK_THROWS_AS(writer.add(at::zeros({0})), frugal::ShapeError);
  CHECK_THROWS_AS(writer.close(), frugal::EmptySourceError);
}

TEST_CASE("a folder with shards is not written to") {
  TemporaryFolder const folder;
  {
    ShardWriter writer(folder.path(), {.records_per_shard = 1});
    for (int i = 0; i < 3; ++i) writer.add(i);
  }  // abandoned: the shards that were complete stay, without a list
  CHECK_THROWS_AS(RecordSet<int>(folder.path()), frugal::DataError);
  CHECK(RecordSet<int>(folder.path(), {.on_damage = frugal::OnDamage::Skip}).size() == 2);
  CHECK_THROWS_AS(ShardWriter(folder.path()), frugal::StoreError);
}

TEST_CASE("a set is written whole") {
  struct Squares {
    std::uint64_t size() const { return 7; }
    std::uint64_t get(std::uint64_t index) const { return index * index; }
  };
  TemporaryFolder const folder;
  frugal::write_shards(folder / "new/squares", Squares{}, {.records_per_shard = 3});
  RecordSet<std::uint64_t> const set(folder / "new/squares");
  CHECK(set.size() == 7);
  CHECK(set.get(6) == 36);
}

}  // namespace frugal_test::data_shards_shard_writer
