// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
#include <frugal/data/shards/pack_records.hpp>

#include <frugal/data/shards/record_folder.hpp>
#include <frugal/data/shards/text_lines.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"
#include "support/tar_files.hpp"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace frugal_test::data_shards_pack_records {

using frugal::PackedSample;
using support::TemporaryFolder;

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

TEST_CASE("a disk that fails is no damage of a sample: it ends the packing") {
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

}  // namespace frugal_test::data_shards_pack_records
