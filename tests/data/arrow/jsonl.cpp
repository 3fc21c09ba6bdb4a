// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: arrow
#include <frugal/data/arrow/jsonl.hpp>
#include <frugal/data/arrow/parquet_set.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;
using frugal::Cell;
using frugal::ColumnType;
using frugal::Dtype;
using frugal::Numbers;
using frugal::read_jsonl;
using frugal_test::support::TemporaryFolder;

namespace frugal_test::arrow_jsonl {

fs::path file(TemporaryFolder const& folder, std::string const& text) {
  std::ofstream(folder / "a.jsonl", std::ios::binary) << text;
  return folder / "a.jsonl";
}

TEST_CASE("objects of scalars, lists and objects are rows") {
  TemporaryFolder const folder;
  auto const set = read_jsonl(file(
      folder,
      R"({"n": 1, "x": 0.5, "b": true, "s": "aé\n", "l": [1, 2], "t": ["a", "b"], "o": {"w": 3, "p": {"q": 4}}}
{"n": -2, "x": 3.0, "b": false, "l": [], "t": [], "o": {"w": 5, "p": {"q": 6}}}
)"));
  REQUIRE(set.size() == 2);
  CHECK(set.columns() == std::vector<std::string>{"n", "x", "b", "s", "l", "t", "o.w", "o.p.q"});
  std::string const two("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16);
  CHECK(set.get(0).cells() == std::vector<Cell>{Cell(std::int64_t{1}), Cell(0.5), Cell(true),
                                                Cell(std::string("aé\n")),
                                                Cell(Numbers{.dtype = Dtype::i64, .bytes = two}),
                                                Cell(std::vector<std::string>{"a", "b"}),
                                                Cell(std::int64_t{3}), Cell(std::int64_t{4})});
  CHECK(set.get(1).is_null("s"));
  CHECK(set.get(1).numbers("l").count() == 0);
  CHECK(set.get(1).integer("o.p.q") == 6);
}

TEST_CASE("columns and types may be set") {
  TemporaryFolder const folder;
  auto const path = file(folder, "{\"when\": \"2026-01-31 12:00:00\", \"n\": 1}\n");
  CHECK(read_jsonl(path).get(0).integer("when") == 1769860800);
  auto const set = read_jsonl(
      path,
      {.columns = {"n", "when"}, .types = {{"when", ColumnType::text}, {"n", ColumnType::real}}});
  CHECK(set.get(0).cells() ==
        std::vector<Cell>{Cell(1.0), Cell(std::string("2026-01-31 12:00:00"))});
  CHECK_THROWS_AS(read_jsonl(path, {.columns = {"m"}}), frugal::SettingsError);
}

TEST_CASE("a field and a field of an object that get one name are refused") {
  TemporaryFolder const folder;
  fs::path const path = folder / "a.jsonl";
  std::ofstream(path) << R"({"box.width": 1, "box": {"width": 2}})" << '\n';
  CHECK_THROWS_WITH_AS(frugal::read_jsonl(path), doctest::Contains("both are called box.width"),
                       frugal::DataError);
}

TEST_CASE("lines that are nested too deep are refused, and do not end the process") {
  TemporaryFolder const folder;
  fs::path const path = folder / "a.jsonl";
  std::string objects;
  for (int i = 0; i < 50000; ++i) objects += "{\"a\":";
  for (std::string const& line :
       {"{\"a\":" + std::string(50000, '[') + "1" + std::string(50000, ']') + "}",
        objects + "1" + std::string(50000, '}')}) {
    std::ofstream(path) << "{\"a\": 1}\n" << line << '\n';
    CHECK_THROWS_WITH_AS(frugal::read_jsonl(path), doctest::Contains("line 2 is nested deeper"),
                         frugal::DataError);
    CHECK_THROWS_WITH_AS(frugal::jsonl_to_parquet(path, folder / "a.parquet"),
                         doctest::Contains("line 2 is nested deeper"), frugal::DataError);
  }
}

TEST_CASE("damaged files are named") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(read_jsonl(folder / "none.jsonl"), frugal::DataError);
  CHECK_THROWS_AS(read_jsonl(file(folder, "")), frugal::DataError);
  CHECK_THROWS_AS(read_jsonl(file(folder, "{\"a\": 1}\n{\"a\": ")), frugal::DataError);
  CHECK_THROWS_AS(read_jsonl(file(folder, "[1, 2]\n")), frugal::DataError);
  CHECK_THROWS_WITH_AS(read_jsonl(file(folder, "{\"a\": 1}\n{\"a\": \"x\"}\n")),
                       doctest::Contains("changed from number to string in row 1"),
                       frugal::DataError);
  CHECK_THROWS_WITH_AS(read_jsonl(file(folder, "{\"a\": [[1]]}\n")),
                       doctest::Contains("type is not read"), frugal::SettingsError);
  CHECK_THROWS_WITH_AS(read_jsonl(file(folder, "{\"a\": 1}\n"), {.most_bytes = 3}),
                       doctest::Contains("Call jsonl_to_parquet once"), frugal::SettingsError);
}

TEST_CASE("a large file becomes Parquet block by block") {
  TemporaryFolder const folder;
  std::string text;
  for (int i = 0; i < 100000; ++i) {
    text += "{\"n\": " + std::to_string(i) + ", \"o\": {\"x\": " + std::to_string(i) + ".5}}\n";
  }
  REQUIRE(text.size() > std::size_t{3} << 20);
  CHECK(frugal::jsonl_to_parquet(file(folder, text), folder / "a.parquet") == 100000);
  frugal::ParquetSet const set(folder / "a.parquet");
  REQUIRE(set.size() == 100000);
  CHECK(set.get(98765).integer("n") == 98765);
  CHECK(set.get(98765).real("o.x") == 98765.5);
}

}  // namespace frugal_test::arrow_jsonl
