// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/record_layout.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace frugal_test::data_shards_record_layout {

using frugal::DataError;
using frugal::Dtype;
using frugal::RecordField;
using frugal::RecordLayout;
using frugal::ShardList;
using frugal_test::support::TemporaryFolder;

std::string fault_of(std::vector<RecordField> fields) {
  std::string why;
  CHECK_FALSE(RecordLayout::of(std::move(fields), why));
  return why;
}

TEST_CASE("fields have sizes, and a layout reads as text") {
  std::string why;
  auto const layout = RecordLayout::of({{.name = "a", .dtype = Dtype::u8, .shape = {3}},
                                        {.name = "b", .dtype = Dtype::f32, .shape = {2, 2}},
                                        {.name = "c", .dtype = Dtype::u8, .shape = {}}},
                                       why);
  REQUIRE(layout);
  CHECK(why.empty());
  CHECK(layout->fixed());
  CHECK(layout->fields()[0].bytes == 3);
  CHECK(layout->fields()[1].bytes == 16);
  CHECK(layout->fields()[2].bytes == 1);
  CHECK(layout->text() == "a U8 [3], b F32 [2, 2], c U8 []");
}

TEST_CASE("records without fields are any bytes") {
  CHECK_FALSE(RecordLayout().fixed());
  CHECK(RecordLayout().text() == "bytes");
}

TEST_CASE("impossible layouts are refused with a reason") {
  CHECK(fault_of({}) == "a record has 1 to 256 fields, and this one 0");
  CHECK(fault_of(std::vector<RecordField>(257)).ends_with("and this one 257"));
  CHECK(fault_of({{.name = "a"}, {.name = "a"}}) == "two fields have the name \"a\"");
  // A name is part of the header's JSON.
  for (std::string const name : {"\xff", "\xed\xa0\x80", "\xc3"}) {
    CHECK(fault_of({{.name = name}}) == "the name of a field is not UTF-8");
  }
  CHECK(fault_of({{.name = "a", .dtype = Dtype::f4, .shape = {3}}}) ==
        "the field \"a\" ends within a byte");
  CHECK(fault_of({{.name = "a", .shape = {1ULL << 63, 1ULL << 63}}}) ==
        "the field \"a\" is larger than 64 bits can say");
  for (std::string const name : {"bytes.offsets", "frugal.block_hashes", "__metadata__"}) {
    CHECK(fault_of({{.name = name}}) ==
          "a shard has a tensor or metadata named \"" + name + "\" itself");
  }
  CHECK(fault_of({{.name = "a", .shape = {0}}}) == "a record has no bytes");
}

ShardList two() {
  return {.shards = {{.name = "shard-000000.safetensors", .records = 3, .bytes = 400, .hash = 7},
                     {.name = "an \"odd\" name", .records = 0, .bytes = 192, .hash = ~0ULL}}};
}

std::string why(std::string const& text) {
  try {
    static_cast<void>(ShardList::parse(text, "shards.json"));
  } catch (DataError const& error) {
    CHECK(error.fault().where.starts_with("shards.json"));
    return error.fault().why;
  }
  return "accepted";
}

TEST_CASE("a list comes back as it was written") {
  TemporaryFolder const folder;
  two().write(folder.path());
  CHECK(ShardList::read(folder.path()).shards == two().shards);
  CHECK_THROWS_AS(two().write(folder.path()), frugal::StoreError);
}

TEST_CASE("shards have numbered names") {
  CHECK(ShardList::shard_name(17) == "shard-000017.safetensors");
  CHECK(ShardList::shard_name(1234567) == "shard-1234567.safetensors");
}

TEST_CASE("a folder without a list is unfinished, or not there") {
  TemporaryFolder const folder;
  CHECK_THROWS_WITH_AS(ShardList::read(folder.path()),
                       doctest::Contains("writing was not finished"), DataError);
  CHECK_THROWS_WITH_AS(ShardList::read(folder / "none"), doctest::Contains("no such folder"),
                       DataError);
  std::filesystem::create_symlink("loop", folder / "loop");
  CHECK_THROWS_AS(ShardList::read(folder / "loop"), DataError);
}

TEST_CASE("damaged lists are refused") {
  std::string const begin = R"({"format":"frugal shards","version":1,"shards":[)";
  std::string const rest = R"(,"records":1,"bytes":1,"hash":"0000000000000007"}]})";
  CHECK(why(begin + R"({"name":"a")" + rest) == "accepted");
  CHECK(why(begin + R"({"name":"a")" + rest.substr(0, rest.size() - 2) + R"(,{"name":"a")" +
            rest) == "the shard is listed twice");
  CHECK(why("") == "it is not a JSON object");
  CHECK(why(two().text().substr(0, 90)) == "it is not a JSON object");
  CHECK(why(R"({"format":"frugal records"})") == R"("format" does not say "frugal shards")");
  CHECK(why(R"({"format":"frugal shards","version":2,"shards":[]})") ==
        "their version is 2, and this frugal reads up to 1");
  // A name must not lead out of the folder.
  for (std::string const name : {"", ".", "..", "../a", "/etc/passwd", "a/b", "a\\u0000b"}) {
    CHECK(why(begin + R"({"name":")" + name + "\"" + rest) == "\"name\" is no name of a file");
  }
  CHECK(why(begin + R"({"name":"a","records":-1)" + rest.substr(12)) ==
        "\"records\" is not a number from 0 to 2^63 - 1");
}

}  // namespace frugal_test::data_shards_record_layout
