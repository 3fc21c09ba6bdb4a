// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/shards/record_folder.hpp>
#include <frugal/data/shards/shard_order.hpp>

#include "data/shards/records.hpp"
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::data_shards_record_folder {

using namespace frugal_test::records;
using frugal::DataError;
using frugal::OnDamage;
using frugal::RecordFolder;
using frugal::ShardList;
using frugal::Verify;
using frugal_test::support::TemporaryFolder;

static_assert(frugal::IdentifiedSet<RecordFolder>);

/// Shards of these many records, numbered through.
void write_shards(std::filesystem::path const& folder, std::vector<std::int64_t> const& sizes) {
  std::vector<std::uint64_t> const none{0}, no_rows{0, 3};
  ShardList list;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto const name = ShardList::shard_name(i);
    if (sizes[i] == 0) {  // as another program may write it
      auto const bytes = file_of(
          {{"data", frugal::Dtype::u8, no_rows, {}}, {"target", frugal::Dtype::i64, none, {}}});
      put_bytes(folder / name, bytes);
      list.shards.push_back({.name = name, .hash = frugal::Hash::of(bytes)});
      continue;
    }
    list.shards.push_back(write_small(folder / name, sizes[i], first));
    list.shards.back().name = name;
    first += sizes[i];
  }
  list.write(folder);
}

void check_all(RecordFolder const& set, std::vector<std::int64_t> const& expected) {
  REQUIRE(set.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(is_small(set, i, expected[i]));
  }
}

std::vector<std::int64_t> range(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = begin; i < end; ++i) all.push_back(i);
  return all;
}

TEST_CASE("records are numbered through the shards, whatever their sizes") {
  for (auto const& sizes : std::vector<std::vector<std::int64_t>>{
           {10}, {4, 4, 4}, {4, 4, 1}, {1, 4, 2}, {4, 4, 9}, {0, 3, 0, 2}, {3, 3, 0}}) {
    TemporaryFolder const folder;
    write_shards(folder.path(), sizes);
    RecordFolder const set(folder.path());
    std::int64_t total = 0;
    for (std::int64_t const size : sizes) total += size;
    check_all(set, range(0, total));
    CHECK(set.damage().count() == 0);
    CHECK(set.shard_sizes() == std::vector<std::uint64_t>(sizes.begin(), sizes.end()));
  }
}

TEST_CASE("an order reads it shard by shard, each record once") {
  TemporaryFolder const folder;
  write_shards(folder.path(), {3, 4, 2, 5});
  RecordFolder const set(folder.path());
  frugal::ShardOrder order(set, {.batch = 14}, {.shards = 1});
  std::vector<std::uint64_t> indices(14);
  auto const slice = order.advance();
  REQUIRE(slice.count == 14);
  order.indices(slice, std::span(indices));
  std::vector<std::size_t> shards;  // in the order in which they are read
  for (std::uint64_t const index : indices) shards.push_back(set.place(index).shard);
  CHECK(std::unique(shards.begin(), shards.end()) == shards.begin() + 4);
  std::sort(indices.begin(), indices.end());
  for (std::uint64_t i = 0; i < 14; ++i) CHECK(indices[i] == i);
}

TEST_CASE("a path that cannot be followed is a StoreError") {
  TemporaryFolder const folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  CHECK_THROWS_AS(RecordFolder(folder / "loop"), frugal::StoreError);
}

TEST_CASE("one file is a set, too") {
  TemporaryFolder const folder;
  write_small(folder / "a.safetensors", 5);
  RecordFolder const set(folder / "a.safetensors");
  check_all(set, range(0, 5));
  CHECK(set.name(3) == (folder / "a.safetensors").string() + ", record 3");
}

TEST_CASE("a missing, cut or foreign shard fails, or is skipped, counted and named") {
  for (std::string const damage : {"missing", "cut", "foreign", "empty"}) {
    CAPTURE(damage);
    TemporaryFolder const folder;
    write_shards(folder.path(), {4, 4, 4});
    auto const victim = folder / ShardList::shard_name(1);
    if (damage == "cut") {
      std::filesystem::resize_file(victim, std::filesystem::file_size(victim) - 1);
    } else {
      std::filesystem::remove(victim);
    }
    if (damage == "foreign") write_small(victim, 4, 100);
    if (damage == "empty") put_bytes(victim, {});
    CHECK_THROWS_AS(RecordFolder(folder.path()), frugal::Error);
    RecordFolder const set(folder.path(), {.on_damage = OnDamage::Skip});
    auto expected = range(0, 4);
    for (auto const i : range(8, 12)) expected.push_back(i);
    check_all(set, expected);
    CHECK(set.damage().names() == std::vector<std::string>{victim.string()});
  }
}

TEST_CASE("a list without sizes still has the hashes of its shards") {
  TemporaryFolder const folder;
  write_small(folder / "a.safetensors", 3);
  ShardList{.shards = {{.name = "a.safetensors"}}}.write(folder.path());
  CHECK_THROWS_WITH_AS(RecordFolder(folder.path()),
                       doctest::Contains("the shard is not the one that was written"), DataError);
}

TEST_CASE("a damaged block is found when it is read, or at once") {
  TemporaryFolder const folder;
  write_shards(folder.path(), {4, 4});
  auto const victim = folder / ShardList::shard_name(0);
  auto bytes = file_bytes(victim);
  bytes.back() ^= std::byte{1};
  put_bytes(victim, bytes);
  RecordFolder const late(folder.path(), {.on_damage = OnDamage::Skip});
  CHECK(late.size() == 8);
  CHECK(is_small(late, 4, 4));
  CHECK_THROWS_AS(static_cast<void>(late.get(3)), DataError);
  RecordFolder const early(folder.path(), {.on_damage = OnDamage::Skip, .verify = Verify::AtOpen});
  check_all(early, range(4, 8));
  CHECK(early.damage().count() == 1);
}

TEST_CASE("of an unfinished folder the complete shards can be taken") {
  TemporaryFolder const folder;
  write_shards(folder.path(), {4, 4});
  std::filesystem::remove(folder / ShardList::file_name);
  put_bytes(folder / ".shard-000002.safetensors-1.partial", bytes_of("half of a shard"));
  CHECK_THROWS_AS(RecordFolder(folder.path()), DataError);
  RecordFolder const set(folder.path(), {.on_damage = OnDamage::Skip});
  check_all(set, range(0, 8));
  CHECK(set.damage().names() == std::vector<std::string>{(folder / ShardList::file_name).string()});
}

TEST_CASE("without a shard there is no set") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(RecordFolder(folder.path(), {.on_damage = OnDamage::Skip}),
                  frugal::EmptySourceError);
}

TEST_CASE("the identity follows the content and the order of the shards") {
  TemporaryFolder const one, same, other, less;
  write_shards(one.path(), {4, 4});
  write_shards(same.path(), {4, 4});
  write_shards(other.path(), {3, 5});
  write_shards(less.path(), {4});
  std::string const identity = RecordFolder(one.path()).identity();
  CHECK(identity == RecordFolder(same.path()).identity());
  CHECK(identity != RecordFolder(other.path()).identity());
  CHECK(identity != RecordFolder(less.path()).identity());
}

TEST_CASE("a copy keeps the files alive") {
  TemporaryFolder const folder;
  write_shards(folder.path(), {4, 4});
  std::span<std::byte const> record;
  RecordFolder const copy = [&] {
    RecordFolder const set(folder.path());
    record = set.get(5);
    return set;
  }();
  CHECK(text_of(record) == "555");
}

TEST_CASE("a list may have a file of another program, by the hash of all its bytes") {
  TemporaryFolder const folder;
  std::vector<std::uint64_t> const shape{4};
  auto const bytes = file_of(
      {{.name = "a", .dtype = frugal::Dtype::u8, .shape = shape, .bytes = bytes_of("abcd")}});
  put_bytes(folder / "a.safetensors", bytes);
  ShardList{.shards = {{.name = "a.safetensors", .hash = frugal::Hash::of(bytes)}}}.write(
      folder.path());
  CHECK(text_of(RecordFolder(folder.path()).get(2)) == "c");
  CHECK_THROWS_AS(RecordFolder(folder.path(), {.verify = Verify::AtOpen}), DataError);
}

TEST_CASE("a shard with another layout than the first names both") {
  TemporaryFolder const folder;
  auto first = write_small(folder / "a.safetensors", 2);
  auto second = write_file(folder / "b.safetensors", {}, 16,
                           [](frugal::ShardFiles& files) { add_bytes(files, "text"); });
  first.name = "a.safetensors";
  second.name = "b.safetensors";
  ShardList{.shards = {first, second}}.write(folder.path());
  CHECK_THROWS_WITH_AS(RecordFolder(folder.path()),
                       doctest::Contains("they are bytes, and those of "), DataError);
  CHECK(RecordFolder(folder.path(), {.on_damage = OnDamage::Skip}).size() == 2);
}

}  // namespace frugal_test::data_shards_record_folder
