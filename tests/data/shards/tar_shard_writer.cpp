// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
#include <frugal/data/shards/tar_shard_writer.hpp>

#include <frugal/data/shards/tar_set.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"
#include "support/tar_files.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace frugal_test::data_shards_tar_shard_writer {

using frugal::DataError;
using frugal::TarShardWriter;
using support::TemporaryFolder;

std::string why(TarShardWriter& writer, std::string const& key,
                std::vector<frugal::ShardField> const& fields) {
  try {
    writer.add(key, fields);
  } catch (DataError const& error) {
    return error.fault().why;
  }
  return "nothing was thrown";
}

TEST_CASE("shards end at a number of samples, or at a size, and each is whole") {
  TemporaryFolder folder;
  {
    TarShardWriter writer(folder / "by number", {.samples = 2});
    for (char const* key : {"a", "b", "c"}) writer.add(key, {{"txt", key}});
    writer.finish();
    CHECK(writer.samples() == 3);
    CHECK(writer.bytes() == 3);
    CHECK(writer.shards() == std::vector{folder / "by number/shard-000000.tar",
                                         folder / "by number/shard-000001.tar"});
  }
  std::string const large(3000, 'x');
  TarShardWriter writer(folder / "by size", {.bytes = 10'000}, "train");
  for (int i = 0; i < 5; ++i) writer.add(std::to_string(i), {{"bin", large}});
  writer.finish();
  // A sample takes 512 + 3,072 bytes, and the end 1,024: two fit.
  CHECK(writer.shards().size() == 3);
  CHECK(std::filesystem::file_size(folder / "by size/train-000000.tar") == 2 * 3584 + 1024);
  CHECK(frugal::TarSet((folder / "by size").string()).get(4)["bin"] == large);
}

TEST_CASE("one sample may exceed the size of a shard") {
  TemporaryFolder folder;
  TarShardWriter writer(folder / "set", {.bytes = 1000});
  std::string const large(3000, 'x');
  writer.add("a", {{"bin", large}});
  writer.add("b", {{"bin", large}});
  writer.finish();
  CHECK(writer.shards().size() == 2);
}

TEST_CASE("the same samples give the same bytes") {
  TemporaryFolder folder;
  for (char const* name : {"1", "2"}) {
    TarShardWriter writer(folder / name);
    writer.add("a", {{"txt", "text"}, {"cls", "3"}});
    writer.finish();
  }
  auto const bytes = support::text_of(folder / "1/shard-000000.tar");
  CHECK(bytes == support::text_of(folder / "2/shard-000000.tar"));
  CHECK(bytes.size() == 4 * 512 + 1024);
}

TEST_CASE("long keys, keys in folders and empty fields come back") {
  TemporaryFolder folder;
  TarShardWriter writer(folder / "set");
  std::string const long_key = "d/" + std::string(300, 'k'),
                    accent = "mod\xc3\xa8le" + std::string(200, 'x');
  for (std::string const& key : {long_key, accent, std::string("a/b.c/d")}) {
    writer.add(key, {{"seg.png", ""}, {"txt", key}});
  }
  writer.finish();
  frugal::TarSet const set((folder / "set").string());
  REQUIRE(set.size() == 3);
  CHECK(set.get(0).key == long_key);
  CHECK(set.get(1)["txt"] == accent);
  CHECK(set.get(2).key == "a/b.c/d");
  CHECK(set.get(2)["seg.png"].empty());
}

TEST_CASE("readers see whole shards alone, and a writer that is given up leaves no part of one") {
  TemporaryFolder folder;
  {
    TarShardWriter writer(folder / "set", {.samples = 2});
    for (char const* key : {"a", "b", "c"}) writer.add(key, {{"txt", key}});
    CHECK(frugal::TarSet((folder / "set").string(), {.keep_index = false}).size() == 2);
  }
  CHECK(support::entries(folder / "set") == 1);
}

TEST_CASE("a shard that is there is not overwritten") {
  TemporaryFolder folder;
  support::write_bytes(
      (std::filesystem::create_directories(folder / "set"), folder / "set/shard-000001.tar"),
      "mine");
  TarShardWriter writer(folder / "set", {.samples = 1});
  writer.add("a", {{"txt", "a"}});
  CHECK_THROWS_AS(writer.add("b", {{"txt", "b"}}), frugal::SettingsError);
  CHECK(support::text_of(folder / "set/shard-000001.tar") == "mine");
}

TEST_CASE("what readers would read otherwise is not written") {
  TemporaryFolder folder;
  TarShardWriter writer(folder / "set");
  CHECK(why(writer, "a.b", {{"txt", "x"}}).find("a.b.txt reads as another key") !=
        std::string::npos);
  CHECK(why(writer, "a", {{"TXT", "x"}}).find("no capital letter") != std::string::npos);
  CHECK(why(writer, "a", {{"", "x"}}).find("reads as another key") != std::string::npos);
  CHECK(why(writer, "a", {{"b/c", "x"}}).find("reads as another key") != std::string::npos);
  CHECK(why(writer, "", {{"txt", "x"}}).find("reads as another key") != std::string::npos);
  CHECK(why(writer, "../a", {{"txt", "x"}}) == "a member's name leads out of its folder (..)");
  CHECK(why(writer, "__meta__/a", {{"txt", "x"}}).find("reads as another key") !=
        std::string::npos);
  CHECK(why(writer, "a", {}) == "it has no field");
  CHECK(why(writer, "a", {{"txt", "x"}, {"txt", "y"}}) == "it has the field txt twice");
  CHECK(why(writer, "a", {{"txt", "x"}}) == "nothing was thrown");
  CHECK(why(writer, "a", {{"cls", "1"}}).find("its key is that of the sample before") == 0);
  CHECK_THROWS_AS(TarShardWriter(folder / "set", {.samples = 0}), frugal::SettingsError);
}

TEST_CASE("a folder that cannot be made is an error of the disk") {
  CHECK_THROWS_AS(TarShardWriter("/proc/none/set"), frugal::StoreError);
}

}  // namespace frugal_test::data_shards_tar_shard_writer
