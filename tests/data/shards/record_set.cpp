// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/shards/record_set.hpp>

#include "data/shards/records.hpp"
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/data/collate.hpp>
#include <frugal/data/loading/transformed.hpp>
#include <frugal/data/shards/shard_order.hpp>
#include <frugal/data/shards/shard_writer.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal_test::data_shards_record_set {

using frugal::Batch;
using frugal::RecordSet;
using frugal_test::support::TemporaryFolder;

static_assert(frugal::BatchedSet<RecordSet<>> && frugal::IdentifiedSet<RecordSet<>>);
static_assert(frugal::SampleSet<RecordSet<std::string>>);
static_assert(frugal::ShardedSet<RecordSet<>>);
static_assert(!frugal::BatchedSet<RecordSet<std::string>>);

constexpr std::int64_t count = 23;

Batch image(std::int64_t i) {
  return {at::arange(12, at::kInt).add(i).to(at::kByte).view({3, 4}),
          at::scalar_tensor(i, at::kLong)};
}

/// Shards of five samples, 23 in all, in blocks that cut records.
void write_images(std::filesystem::path const& folder) {
  frugal::ShardWriter writer(folder, {.records_per_shard = 5, .block_bytes = 50});
  for (std::int64_t i = 0; i < count; ++i) writer.add(image(i));
  CHECK(writer.size() == count);
  CHECK(writer.close().shards.size() == 5);
}

template <class S>
std::vector<S> samples_of(RecordSet<S> const& set, std::vector<std::uint64_t> const& indices) {
  std::vector<S> samples;
  for (std::uint64_t const index : indices) samples.push_back(set.get(index));
  return samples;
}

std::vector<std::uint64_t> const some{3, 22, 4, 5, 6, 7, 0, 3, 19};

TEST_CASE("a sample past the end is an error, alone and in a batch") {
  TemporaryFolder const folder;
  write_images(folder.path());
  RecordSet<> const set(folder.path());
  CHECK_THROWS_AS(set.get(count), frugal::DataError);
  CHECK_THROWS_AS(set.name(count), frugal::DataError);
  CHECK_THROWS_AS(set.get_batch(std::vector<std::uint64_t>{0, count + 100}), frugal::DataError);
}

struct Reads {
  static constexpr bool keeps_input = true;
  at::Tensor operator()(Batch const& sample) const { return sample.data; }
};

TEST_CASE("a function may write into its sample: the file is not changed, and nothing ends") {
  TemporaryFolder const folder;
  write_images(folder.path());
  frugal::Transformed const doubled(RecordSet<>(folder.path()), [](Batch sample) {
    sample.data.mul_(2);
    return sample;
  });
  for (int epoch = 0; epoch < 2; ++epoch) {
    CHECK(at::equal(doubled.get(4).data, image(4).data * 2));
  }
  // A function that only reads gets the view.
  frugal::Transformed const same(RecordSet<>(folder.path()), Reads{});
  CHECK(same.get(4).const_data_ptr() == same.set().get(4).data.const_data_ptr());
}

TEST_CASE("samples come back, as views of the file that outlive the set") {
  TemporaryFolder const folder;
  write_images(folder.path());
  std::vector<Batch> samples;
  {
    RecordSet<> const set(folder.path());
    REQUIRE(set.size() == count);
    for (std::uint64_t i = 0; i < count; ++i) samples.push_back(set.get(i));
    bool const in_place = set.get(7).data.const_data_ptr() == samples[7].data.const_data_ptr();
    CHECK(in_place);
    CHECK(set.name(7) == (folder / "shard-000001.safetensors").string() + ", record 2");
    CHECK(set.shard_sizes() == std::vector<std::uint64_t>{5, 5, 5, 5, 3});
  }
  for (std::int64_t i = 0; i < count; ++i) {
    auto const& sample = samples[static_cast<std::size_t>(i)];
    CHECK(at::equal(sample.data, image(i).data));
    CHECK(at::equal(sample.target, image(i).target));
  }
}

TEST_CASE("a batch is what Stack makes of the samples, bit for bit") {
  TemporaryFolder const folder;
  write_images(folder.path());
  RecordSet<> const set(folder.path());
  Batch const batch = set.get_batch(some);
  Batch const expected = frugal::Stack{}(samples_of(set, some));
  CHECK(at::equal(batch.data, expected.data));
  CHECK(at::equal(batch.target, expected.target));
  CHECK(batch.data.dtype() == at::kByte);
  CHECK(batch.data.is_contiguous());
  batch.data.add_(1);  // a batch is memory of its own
  CHECK(at::equal(set.get(3).data, image(3).data));
}

template <class S>
void check_type(std::vector<S> const& samples) {
  TemporaryFolder const folder;
  frugal::ShardWriter writer(folder.path(), {.records_per_shard = 2});
  for (S const& sample : samples) writer.add(sample);
  writer.close();
  RecordSet<S> const set(folder.path());
  REQUIRE(set.size() == samples.size());
  std::vector<std::uint64_t> indices;
  for (std::uint64_t i = 0; i < samples.size(); ++i) indices.push_back(i);
  auto const expected = frugal::Stack{}(samples);
  auto const batch = set.get_batch(indices);
  static_assert(std::is_same_v<decltype(batch), decltype(expected)>);
  std::vector<at::Tensor> tensors, wanted;
  frugal::batch_tensors(batch, [&](at::Tensor const& tensor) { tensors.push_back(tensor); });
  frugal::batch_tensors(expected, [&](at::Tensor const& tensor) { wanted.push_back(tensor); });
  REQUIRE(tensors.size() == wanted.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CHECK(tensors[i].dtype() == wanted[i].dtype());
    CHECK(at::equal(tensors[i], wanted[i]));
  }
  auto const again = frugal::Stack{}(samples_of(set, indices));
  tensors.clear();
  frugal::batch_tensors(again, [&](at::Tensor const& tensor) { tensors.push_back(tensor); });
  for (std::size_t i = 0; i < tensors.size(); ++i) CHECK(at::equal(tensors[i], wanted[i]));
}

TEST_CASE("tensors, numbers, pairs, tuples, arrays and maps are samples") {
  auto const row = [](int i) { return at::arange(6, at::kFloat).add(i); };
  check_type(std::vector<at::Tensor>{row(0), row(1), row(2)});
  check_type(std::vector<int>{5, -6, 7});
  check_type(std::vector<float>{0.5F, 1.5F});
  check_type(std::vector<std::pair<at::Tensor, std::int64_t>>{{row(0), 3}, {row(1), -4}});
  check_type(std::vector<std::tuple<at::Tensor, double, at::Tensor, bool>>{
      {row(0), 0.25, row(1).to(at::kHalf), true}, {row(2), 0.5, row(3).to(at::kHalf), false}});
  check_type(std::vector<std::array<at::Tensor, 2>>{{row(0), row(1)}, {row(2), row(3)}});
  check_type(std::vector<std::map<std::string, at::Tensor>>{
      {{"input_ids", row(0)}, {"mask", row(1).to(at::kBool)}},
      {{"input_ids", row(2)}, {"mask", row(3).to(at::kBool)}}});
}

TEST_CASE("runs of neighbours across shards are gathered in order") {
  TemporaryFolder const folder;
  frugal::ShardWriter writer(folder.path(), {.records_per_shard = 4});
  for (int i = 0; i < 10; ++i) writer.add(at::full({8}, i, at::kInt));
  writer.close();
  RecordSet<at::Tensor> const set(folder.path());
  std::vector<std::uint64_t> const indices{1, 2, 3, 4, 5, 9, 8, 0, 1};
  auto const batch = set.get_batch(indices);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    CHECK(batch[static_cast<std::int64_t>(i)]
              .eq(static_cast<std::int64_t>(indices[i]))
              .all()
              .item<bool>());
  }
}

TEST_CASE("bytes of any number are strings") {
  TemporaryFolder const folder;
  frugal::ShardWriter writer(folder.path(), {.bytes_per_shard = 10});
  for (std::string const text : {"one", "", "a long one, longer than a shard", "four"}) {
    writer.add(text);
  }
  CHECK(writer.close().shards.size() == 3);
  RecordSet<std::string> const set(folder.path());
  REQUIRE(set.size() == 4);
  CHECK(set.get(2) == "a long one, longer than a shard");
  CHECK(set.get(1).empty());
  CHECK(set.get(3) == "four");
}

TEST_CASE("records that are not of the sample type are refused, with what they are") {
  TemporaryFolder const folder;
  write_images(folder.path());
  CHECK_THROWS_WITH_AS(RecordSet<at::Tensor>(folder.path()),
                       doctest::Contains("a record is data U8 [3, 4], target I64 []"),
                       frugal::DataError);
  CHECK_THROWS_AS(RecordSet<std::string>(folder.path()), frugal::DataError);
  using Number = std::pair<at::Tensor, double>;
  CHECK_THROWS_AS(RecordSet<Number>(folder.path()), frugal::DataError);
  using Label = std::pair<at::Tensor, int>;
  CHECK(RecordSet<Label>(folder.path()).get(9).second == 9);
}

TEST_CASE("what is skipped is missing from the set") {
  TemporaryFolder const folder;
  write_images(folder.path());
  std::filesystem::remove(folder / "shard-000001.safetensors");
  CHECK_THROWS_AS(RecordSet<>(folder.path()), frugal::StoreError);
  RecordSet<> const set(folder.path(), {.on_damage = frugal::OnDamage::Skip});
  CHECK(set.size() == count - 5);
  CHECK(set.damage().count() == 1);
  CHECK(set.get(5).target.item<std::int64_t>() == 10);
}

}  // namespace frugal_test::data_shards_record_set
