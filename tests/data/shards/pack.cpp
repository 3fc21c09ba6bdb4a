// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
#include <frugal/data/shards/pack.hpp>

#include "support/files.hpp"
#include "support/tar_files.hpp"

#include <doctest/doctest.h>

#include <frugal/data/shards/record_file.hpp>
#include <frugal/data/shards/tar_set.hpp>
#include <frugal/data/shards/text_lines.hpp>

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace frugal_test::data_shards_pack {

using frugal::OnDamage;
using frugal::PackedSample;
using frugal::TarSet;
using namespace support;
using support::TemporaryFolder;

std::vector<std::string> texts(std::filesystem::path const& folder) {
  TarSet const set(folder.string());
  std::vector<std::string> out;
  for (std::uint64_t i = 0; i < set.size(); ++i) {
    auto const sample = set.get(i);
    out.push_back(sample.key + "=" + std::string(sample["txt"]));
  }
  return out;
}

std::string gzip(std::string const& plain) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, plain.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string two() {
  return tar_member("a.txt", "1") + tar_member("a.cls", "7") + tar_member("b.txt", "2") +
         tar_member("b.cls", "8");
}

TEST_CASE("lines become shards, numbered, with a report of what was packed") {
  TemporaryFolder folder;
  auto const path = write_bytes(folder / "t.txt", "one\ntwo\nthree\n");
  std::vector<std::uint64_t> told;
  auto const report = frugal::pack(
      frugal::TextLines(path), folder / "set",
      {.limits = {.samples = 2}, .progress = [&](std::uint64_t done, std::uint64_t all) {
         CHECK(all == 3);
         told.push_back(done);
       }});
  CHECK(report.samples == 3);
  CHECK(report.bytes == 11);
  CHECK(report.shards ==
        std::vector{folder / "set/shard-000000.tar", folder / "set/shard-000001.tar"});
  CHECK(report.shard_bytes == 2 * 1024 + 1024 + 1024 + 1024);
  CHECK(told == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(texts(folder / "set") ==
        std::vector<std::string>{"000000000=one", "000000001=two", "000000002=three"});
  CHECK_FALSE(std::filesystem::exists(folder / "set.partial"));
}

TEST_CASE("a shuffled pack has every sample once, in an order that the seed alone decides") {
  TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += std::to_string(i) + "\n";
  frugal::TextLines const set(write_bytes(folder / "t.txt", lines));
  auto const order = [&](char const* name, std::uint64_t seed) {
    frugal::pack(set, folder / name, {.shuffle = seed});
    std::vector<std::string> out;
    for (std::string const& each : texts(folder / name)) out.push_back(each.substr(10));
    return out;
  };
  auto const first = order("1", 7);
  CHECK(std::set(first.begin(), first.end()).size() == 50);
  CHECK(first == order("2", 7));
  CHECK(first != order("3", 8));
  CHECK(first.front() + first[1] + first[2] != "012");
}

TEST_CASE("labelled files keep their class and their kind") {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "in/cat");
  std::filesystem::create_directories(folder / "in/dog");
  write_bytes(folder / "in/cat/1.JPG", "cat");
  write_bytes(folder / "in/dog/plain", "dog");
  frugal::pack(frugal::FolderSet(folder / "in"), folder / "set");
  TarSet const set((folder / "set").string());
  CHECK(set.get(0)["jpg"] == "cat");
  CHECK(set.get(0).integer("cls") == 0);
  CHECK(set.get(1)["bin"] == "dog");
  CHECK(set.get(1).integer("cls") == 1);
}

TEST_CASE("shards are packed again with their keys, or with numbers") {
  TemporaryFolder folder;
  write_bytes(folder / "t.tar", two() + tar_end());
  TarSet const set((folder / "t.tar").string());
  frugal::pack(set, folder / "set");
  CHECK(texts(folder / "set") == std::vector<std::string>{"a=1", "b=2"});
  CHECK(TarSet((folder / "set").string()).get(1).integer("cls") == 8);
  frugal::pack(set, folder / "numbered", {.number = true});
  CHECK(texts(folder / "numbered") == std::vector<std::string>{"000000000=1", "000000001=2"});
}

TEST_CASE("a compressed tar file is packed to shards without compression") {
  TemporaryFolder folder;
  auto const path = write_bytes(folder / "t.tar.gz", gzip(two() + tar_end()));
  auto const report = frugal::pack_streams({path, path}, folder / "set", {.number = true});
  CHECK(report.samples == 4);
  CHECK(texts(folder / "set") ==
        std::vector<std::string>{"000000000=1", "000000001=2", "000000002=1", "000000003=2"});
  CHECK_THROWS_AS(frugal::pack_streams({path}, folder / "other", {.shuffle = 1}),
                  frugal::SettingsError);
}

TEST_CASE("bad members of a stream fail, or cost their sample alone") {
  TemporaryFolder folder;
  auto const path = write_bytes(
      folder / "t.tar", tar_member("/w.txt", "w") + tar_member("a.txt", "1") +
                            tar_member("../x.txt", "x") + tar_member("/y.txt", "y") +
                            tar_member("b.txt", "2") + tar_member("b.txt", "3") +
                            tar_member("b.cls", "3") + tar_member("c.txt", "4") + tar_end());
  CHECK_THROWS_AS(frugal::pack_streams({path}, folder / "set"), frugal::DataError);
  CHECK_FALSE(std::filesystem::exists(folder / "set"));
  CHECK_FALSE(std::filesystem::exists(folder / "set.partial"));
  auto const report = frugal::pack_streams({folder / "gone.tar", path}, folder / "set",
                                           {.on_damage = OnDamage::Skip});
  CHECK(texts(folder / "set") == std::vector<std::string>{"a=1", "c=4"});
  CHECK(report.skipped.count() == 5);  // gone.tar, three names, and b
}

TEST_CASE("a stream that is cut off gives the samples before it") {
  TemporaryFolder folder;
  // Bytes that do not shrink, and more than a decoder takes at once.
  std::string large;
  for (unsigned i = 0, x = 1; i < 1'000'000; ++i, x = x * 1664525 + 1013904223) {
    large += static_cast<char>(x >> 24);
  }
  std::string const whole = gzip(two() + tar_member("c.txt", large) + tar_end());
  auto const path = write_bytes(folder / "t.tar.gz", whole.substr(0, whole.size() / 2));
  auto const report = frugal::pack_streams({path}, folder / "set", {.on_damage = OnDamage::Skip});
  CHECK(report.skipped.count() == 1);
  CHECK(texts(folder / "set") == std::vector<std::string>{"a=1", "b=2"});
}

TEST_CASE("a member above the limit is refused before it is read") {
  TemporaryFolder folder;
  frugal::TarStream stream(write_bytes(folder / "t.tar", tar_member("a.txt", "123") +
                                                             tar_member("b.txt", "1") + tar_end()),
                           2);
  CHECK_THROWS_AS(stream.next(), frugal::DataError);
  CHECK(stream.next()->key == "b");
  CHECK_FALSE(stream.next().has_value());
}

TEST_CASE("samples whose keys are unique in their shards alone are packed, each with its own key") {
  struct PerShard {
    std::uint64_t size() const { return 6; }
    PackedSample get(std::uint64_t i) const {
      return {.key = "0", .fields = {{"txt", std::to_string(i)}}};
    }
  };
  TemporaryFolder folder;
  auto const report = frugal::pack(PerShard{}, folder / "set",
                                   {.limits = {.samples = 4}, .on_damage = OnDamage::Skip});
  CHECK(report.samples == 6);
  CHECK(report.skipped.count() == 0);
  CHECK(report.renamed == 3);
  CHECK(texts(folder / "set") == std::vector<std::string>{"0=0", "0-000000001=1", "0=2",
                                                          "0-000000003=3", "0=4", "0-000000005=5"});
  CHECK(frugal::pack(PerShard{}, folder / "shuffled", {.shuffle = 3}).samples == 6);
  std::string const one = tar_member("0.txt", "1") + tar_end();
  auto const path = write_bytes(folder / "t.tar.gz", gzip(one));
  CHECK(frugal::pack_streams({path, path}, folder / "joined").renamed == 1);
}

TEST_CASE("joined streams are read to the last") {
  TemporaryFolder folder;
  std::string const one = tar_member("a.txt", "1") + tar_end();
  std::string const two = tar_member("b.txt", "2") + tar_end();
  frugal::pack_streams({write_bytes(folder / "t.tar.gz", gzip(one + two)),
                        write_bytes(folder / "u.tar.gz", gzip(one) + gzip(two))},
                       folder / "set");
  CHECK(texts(folder / "set") == std::vector<std::string>{"a=1", "b=2", "a=1", "b=2"});
}

TEST_CASE("nothing is overwritten") {
  TemporaryFolder folder;
  frugal::TextLines const set(write_bytes(folder / "t.txt", "one\n"));
  std::filesystem::create_directories(folder / "set");
  CHECK_THROWS_AS(frugal::pack(set, folder / "set"), frugal::SettingsError);
  std::filesystem::create_directories(folder / "new.partial");
  CHECK_THROWS_AS(frugal::pack(set, folder / "new"), frugal::SettingsError);
  CHECK(std::filesystem::exists(folder / "new.partial"));
  CHECK_NOTHROW(frugal::pack(set, folder / "slash/"));
  CHECK(std::filesystem::exists(folder / "slash/shard-000000.tar"));
}

TEST_CASE("a sample that cannot be read or written fails, or is skipped and named") {
  struct Three {
    std::uint64_t size() const { return 3; }
    PackedSample get(std::uint64_t i) const {
      if (i == 0) throw frugal::DataError({.what = "no", .where = "", .why = "bad", .fix = ""});
      return {.key = i == 1 ? "a.b" : "c", .fields = {{"txt", "x"}}};
    }
  };
  TemporaryFolder folder;
  CHECK_THROWS_AS(frugal::pack(Three{}, folder / "set"), frugal::DataError);
  auto const report = frugal::pack(Three{}, folder / "set", {.on_damage = OnDamage::Skip});
  CHECK(report.samples == 1);
  CHECK(report.skipped.names() == std::vector<std::string>{"sample 0", "sample 1"});
}

TEST_CASE("a disk that fails is no damage of a sample: it ends the packing") {
  struct Removing {
    std::filesystem::path folder;
    int* asked;
    std::uint64_t size() const { return 100; }
    PackedSample get(std::uint64_t i) const {
      ++*asked;
      if (i == 1) std::filesystem::remove_all(folder);
      return {.key = std::to_string(i), .fields = {{"txt", "x"}}};
    }
  };
  TemporaryFolder folder;
  int asked = 0;
  CHECK_THROWS_AS(frugal::pack(Removing{folder / "set.partial", &asked}, folder / "set",
                               {.limits = {.samples = 1}, .on_damage = OnDamage::Skip}),
                  frugal::StoreError);
  CHECK(asked == 2);
}

/// An array of two int16 and a label, or what `odd` says for sample 1.
struct Arrays {
  std::vector<PackedSample::Field> odd{};
  std::uint64_t size() const { return 3; }
  PackedSample get(std::uint64_t i) const {
    if (i == 1 && !odd.empty()) return {.key = {}, .fields = odd};
    std::int16_t const values[] = {static_cast<std::int16_t>(i), 7};
    std::string array = frugal::npy_header(frugal::Dtype::i16, std::vector<std::uint64_t>{2});
    array.append(reinterpret_cast<char const*>(values), sizeof values);
    return {.key = "key", .fields = {{"npy", array}, {"cls", std::to_string(10 * i)}}};
  }
};

TEST_CASE("arrays and numbers become records of tensors") {
  TemporaryFolder folder;
  auto const report = frugal::pack_records(Arrays{}, folder / "set", {.limits = {.samples = 2}});
  CHECK(report.samples == 3);
  CHECK(report.shards.size() == 2);
  frugal::RecordFolder const records(folder / "set");
  REQUIRE(records.size() == 3);
  CHECK(records.layout().text() == "npy I16 [2], cls I64 []");
  for (std::uint64_t i = 0; i < 3; ++i) {
    std::int16_t values[2];
    std::int64_t label = 0;
    REQUIRE(records.get(i).size() == sizeof values);
    REQUIRE(records.get(i, 1).size() == sizeof label);
    std::memcpy(values, records.get(i).data(), sizeof values);
    std::memcpy(&label, records.get(i, 1).data(), sizeof label);
    CHECK(values[0] == static_cast<std::int16_t>(i));
    CHECK(values[1] == 7);
    CHECK(label == static_cast<std::int64_t>(10 * i));
  }
}

TEST_CASE("lines become records of bytes, shuffled by a seed") {
  TemporaryFolder folder;
  frugal::TextLines const lines(support::write_bytes(folder / "t.txt", "one\n\nthree\n"));
  frugal::pack_records(lines, folder / "set");
  frugal::RecordFolder const records(folder / "set");
  CHECK(records.size() == 3);
  CHECK(records.get(0).size() == 3);
  CHECK(records.get(1).empty());
  CHECK(records.get(2).size() == 5);
  frugal::pack_records(lines, folder / "other", {.shuffle = 3});
  CHECK(frugal::RecordFolder(folder / "other").size() == 3);
}

TEST_CASE("a sample that fits no record, or has other tensors, fails or is skipped") {
  TemporaryFolder folder;
  for (std::vector<PackedSample::Field> const& odd :
       {std::vector<PackedSample::Field>{{"txt", "a"}, {"cls", "1"}},
        {{"cls", "1"}},
        {{"cls", "one"}},
        {{"npy", "none"}}}) {
    Arrays const set{odd};
    CHECK_THROWS_AS(frugal::pack_records(set, folder / "set"), frugal::DataError);
    CHECK_FALSE(std::filesystem::exists(folder / "set"));
    CHECK_FALSE(std::filesystem::exists(folder / "set.partial"));
    auto const report =
        frugal::pack_records(set, folder / "set", {.on_damage = frugal::OnDamage::Skip});
    CHECK(report.samples == 2);
    CHECK(report.skipped.names() == std::vector<std::string>{"sample 1"});
    std::filesystem::remove_all(folder / "set");
  }
}

TEST_CASE("a disk that fails is no damage of a record: it ends the packing") {
  struct Removing {
    std::filesystem::path folder;
    int* asked;
    std::uint64_t size() const { return 100; }
    PackedSample get(std::uint64_t i) const {
      ++*asked;
      if (i == 1) std::filesystem::remove_all(folder);
      return {.key = "", .fields = {{"cls", "1"}}};
    }
  };
  support::TemporaryFolder folder;
  int asked = 0;
  CHECK_THROWS_AS(
      frugal::pack_records(Removing{folder / "set.partial", &asked}, folder / "set",
                           {.limits = {.samples = 1}, .on_damage = frugal::OnDamage::Skip}),
      frugal::StoreError);
  CHECK(asked == 2);
}

}  // namespace frugal_test::data_shards_pack
