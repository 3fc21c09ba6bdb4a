// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/checkpoint/archive_index.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::store_archive_index {

using frugal::ArchivedCheckpoint;
using frugal::ArchiveIndex;
using support::TemporaryFolder;

ArchivedCheckpoint entry(std::string name, std::uint64_t step, std::uint64_t serial = 1) {
  return {.name = std::move(name),
          .step = step,
          .serial = serial,
          .size = 77,
          .hash = 0x00fedcba98765432,
          .saved_at = 1'700'000'000,
          .moved_at = 1'710'000'000};
}

std::vector<std::string> names_of(ArchiveIndex const& index) {
  std::vector<std::string> names;
  for (auto const& each : index.entries()) names.push_back(each.name);
  return names;
}

TEST_CASE("a missing index is empty") {
  TemporaryFolder folder;
  CHECK(ArchiveIndex(folder / "index.json").entries().empty());
}

TEST_CASE("an entry is there when the index is opened again") {
  TemporaryFolder folder;
  ArchiveIndex(folder / "index.json").put(entry("one \"quoted\" \xc3\xa9.tar.zst", 5, 3));
  ArchiveIndex const index(folder / "index.json");
  REQUIRE(index.entries().size() == 1);
  auto const& read = index.entries()[0];
  CHECK(read.name == "one \"quoted\" \xc3\xa9.tar.zst");
  CHECK(read.step == 5);
  CHECK(read.serial == 3);
  CHECK(read.size == 77);
  CHECK(read.hash == 0x00fedcba98765432);
  CHECK(read.saved_at == 1'700'000'000);
  CHECK(read.moved_at == 1'710'000'000);
}

TEST_CASE("the newest comes first, of one step the later save") {
  TemporaryFolder folder;
  ArchiveIndex index(folder / "index.json");
  for (auto const& each :
       {entry("b", 20, 2), entry("c", 30, 9), entry("d", 20, 8), entry("a", 1)}) {
    index.put(each);
  }
  std::vector<std::string> const expected = {"c", "d", "b", "a"};
  CHECK(names_of(index) == expected);
  CHECK(names_of(ArchiveIndex(folder / "index.json")) == expected);
}

TEST_CASE("an entry with the same name is replaced") {
  TemporaryFolder folder;
  ArchiveIndex index(folder / "index.json");
  index.put(entry("a", 1));
  auto again = entry("a", 1);
  again.size = 99;
  index.put(again);
  REQUIRE(ArchiveIndex(folder / "index.json").entries().size() == 1);
  CHECK(ArchiveIndex(folder / "index.json").entries()[0].size == 99);
}

TEST_CASE("remains of a crashed write do not hinder the next") {
  TemporaryFolder folder;
  support::write_text(folder / "index.json.partial", "{ half");
  ArchiveIndex(folder / "index.json").put(entry("a", 1));
  CHECK(ArchiveIndex(folder / "index.json").entries().size() == 1);
  CHECK_FALSE(std::filesystem::exists(folder / "index.json.partial"));
}

TEST_CASE("an index is JSON that others can read") {
  TemporaryFolder folder;
  ArchiveIndex(folder / "index.json").put(entry("a.tar.zst", 7));
  auto const json = nlohmann::json::parse(support::text_of(folder / "index.json"));
  CHECK(json["format"] == "frugal archive");
  CHECK(json["checkpoints"][0]["name"] == "a.tar.zst");
  CHECK(json["checkpoints"][0]["xxh3"] == "00fedcba98765432");
}

TEST_CASE("a truncated index is damaged and not a shorter one") {
  TemporaryFolder folder;
  ArchiveIndex index(folder / "index.json");
  index.put(entry("a", 1));
  index.put(entry("b", 2));
  std::string const text = support::text_of(folder / "index.json");
  // Everything but the line feed.
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {
    support::write_text(folder / "index.json", text.substr(0, size));
    CAPTURE(size);
    CHECK_THROWS_AS(ArchiveIndex(folder / "index.json"), frugal::FormatError);
  }
}

TEST_CASE("an index with wrong fields says which") {
  TemporaryFolder folder;
  auto const why = [&](std::string const& text) -> std::string {
    support::write_text(folder / "index.json", text);
    try {
      ArchiveIndex index(folder / "index.json");
    } catch (frugal::FormatError const& error) {
      CHECK(error.fault().where.starts_with((folder / "index.json").string()));
      return error.fault().why;
    }
    return "nothing was thrown";
  };
  auto const with = [](std::string const& fields) {
    return R"({"format": "frugal archive", "version": 1, "checkpoints": [{)" + fields + "}]}";
  };
  std::string const rest = R"("serial": 1, "size": 1, "xxh3": "0000000000000000", "saved_at": 0)";
  CHECK(why("[]") == "it is not a JSON object");
  CHECK(why("{}") == "\"format\" does not say \"frugal archive\"");
  CHECK(why(R"({"format": "frugal archive"})") == "\"version\" is missing");
  CHECK(why(R"({"format": "frugal archive", "version": 1, "checkpoints": 3})") ==
        "\"checkpoints\" is not an array");
  CHECK(why(R"({"format": "frugal archive", "version": 1, "checkpoints": [3]})") ==
        "an object is missing where \"name\" goes");
  CHECK(why(with(R"("name": "a")")) == "\"step\" is missing");
  CHECK(why(with(R"("name": "a", "step": -1)")) == "\"step\" is not a number from 0 to 2^63 - 1");
  CHECK(why(with(R"("name": "a", "step": 1.5)")) == "\"step\" is not a number from 0 to 2^63 - 1");
  CHECK(
      why(with(R"("name": "a", "step": 1, "serial": 1, "size": 1, "xxh3": "0x00000000000012")")) ==
      "a hash has an invalid digit");
  CHECK(why(with(R"("name": "a", "step": 1, )" + rest)) == "\"moved_at\" is missing");
  for (std::string const name : {"\"\"", "\"../a\"", "\"/a\"", "\"a/b\"", "7"}) {
    CHECK(why(with("\"name\": " + name + R"(, "step": 1, "moved_at": 0, )" + rest)) ==
          "a file has an invalid name");
  }
}

TEST_CASE("an index of a newer version is refused as such") {
  TemporaryFolder folder;
  support::write_text(folder / "index.json", R"({"format": "frugal archive", "version": 2})");
  CHECK_THROWS_AS(ArchiveIndex(folder / "index.json"), frugal::NewerFormatError);
}

TEST_CASE("an index that cannot be written is an error, and the old one stays") {
  TemporaryFolder folder;
  ArchiveIndex index(folder / "archive" / "index.json");
  CHECK_THROWS_AS(index.put(entry("a", 1)), frugal::IoError);
  CHECK_FALSE(std::filesystem::exists(folder / "archive"));
}

}  // namespace frugal_test::store_archive_index
