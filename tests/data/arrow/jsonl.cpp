// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: arrow
#include <frugal/data/arrow/jsonl.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <frugal/data/arrow/parquet_set.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::data_arrow_json_depth {

using frugal::detail::JsonDepth;

bool shallow(std::string_view text) { return JsonDepth().take(text); }

TEST_CASE("64 levels are taken, and one more is not, in one piece or byte by byte") {
  std::string const most = std::string(32, '[') + std::string(32, '{');
  CHECK(shallow(most));
  CHECK_FALSE(shallow(most + "["));
  CHECK_FALSE(shallow(most + "\n{"));  // a value may go on behind a line feed
  JsonDepth depth;
  for (char const c : "{\"a\":1}\n" + most) CHECK(depth.take({&c, 1}));
  CHECK_FALSE(depth.take("{"));
  CHECK(depth.line() == 2);
}

TEST_CASE("what closes again is no depth, and brackets in strings are none") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "{\"a\": [[]], \"b\": \"[[{\\\"[\\\\\"}\n";
  CHECK(shallow(text));
  CHECK(shallow("\"" + std::string(1000, '[')));
  CHECK_FALSE(
      shallow("\"\\\\\"" + std::string(65, '[')));  // the string ends behind two backslashes
}

TEST_CASE("what is no JSON hides no depth: a parser may begin at any line") {
  CHECK_FALSE(shallow("\"never closed\n" + std::string(65, '[')));
  CHECK_FALSE(shallow("\"\\\n" + std::string(65, '[')));
  CHECK_FALSE(shallow(std::string(1000, ']') + "\n" + std::string(65, '[')));
}

}  // namespace frugal_test::data_arrow_json_depth

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

TEST_CASE("an integer that would be read as another one is refused, and its line named") {
  TemporaryFolder const folder;
  auto const convert = [&](fs::path const& from, frugal::JsonlSettings const& settings = {}) {
    fs::remove(folder / "a.parquet");
    return frugal::jsonl_to_parquet(from, folder / "a.parquet", settings);
  };
  struct Case {
    char const* text;
    char const* column;
  };
  for (Case const& each :
       {Case{"{\"a\": 1}\n{\"a\": 9223372036854775809}\n", "a"},
        Case{"{\"a\": 0.5}\n{\"a\": 9007199254740993}\n", "a"},
        Case{"{\"a\": 0.5}\n{\"a\": -9007199254740993 }\n{\"a\": 18446744073709551615}\n", "a"},
        Case{"{\"b\": {\"\\u0063\": [0.5]}}\n{\"b\": {\"c\": [1, 9007199254740993]}}\n", "b.c"}}) {
    CAPTURE(each.text);
    auto const path = file(folder, each.text);
    std::string const where = std::string("a.jsonl, line 2, column ") + each.column;
    CHECK_THROWS_WITH_AS(read_jsonl(path), doctest::Contains(where.c_str()), frugal::DataError);
    CHECK_THROWS_WITH_AS(convert(path), doctest::Contains(where.c_str()), frugal::DataError);
  }
  auto const path = file(folder, "{\"a\": 18446744073709551615, \"b\": 1}\n");
  CHECK(read_jsonl(path, {.types = {{"a", ColumnType::real}}}).get(0).real("a") ==
        18446744073709551616.0);
  CHECK(read_jsonl(path, {.columns = {"b"}}).get(0).integer("b") == 1);
  auto const exact = file(folder,
                          "{\"a\": 0.5, \"b\": 9007199254740993, \"s\": \"9007199254740993\"}\n"
                          "{\"a\": 18446744073709551616, \"b\": -1, \"s\": \"\"}\n");
  CHECK(read_jsonl(exact).get(0).integer("b") == 9007199254740993);
  CHECK(read_jsonl(exact).get(1).real("a") == 18446744073709551616.0);
  CHECK(convert(exact) == 2);
}

TEST_CASE("a null in a list is refused where its row is read, and other columns are not") {
  TemporaryFolder const folder;
  for (char const* const line :
       {"{\"n\": 1, \"l\": [\"a\", null]}\n", "{\"n\": 1, \"l\": [1, null]}\n"}) {
    auto const path = file(folder, line);
    CHECK_THROWS_WITH_AS(static_cast<void>(read_jsonl(path).get(0)),
                         doctest::Contains("a.jsonl, row 0, column l): item 1 of 2"),
                         frugal::DataError);
    CHECK(read_jsonl(path, {.columns = {"n"}}).get(0).integer("n") == 1);
  }
}

TEST_CASE("fields of objects may have types, and so may names that have a dot themselves") {
  TemporaryFolder const folder;
  auto const path =
      file(folder, "{\"o\": {\"when\": \"2026-01-31 12:00:00\", \"p\": {\"x\": 1}}, \"a.b\": 2}\n");
  auto const set = read_jsonl(path, {.types = {{"o.when", ColumnType::text},
                                               {"o.p.x", ColumnType::real},
                                               {"a.b", ColumnType::real}}});
  CHECK(set.get(0).text("o.when") == "2026-01-31 12:00:00");
  CHECK(set.get(0).cell("o.p.x") == Cell(1.0));
  CHECK(set.get(0).cell("a.b") == Cell(2.0));
  CHECK((read_jsonl(path).unit("o.when") == frugal::TimeUnit::second));
  CHECK(read_jsonl(path, {.types = {{"o.when", ColumnType::microseconds}}})
            .get(0)
            .integer("o.when") == 1769860800000000);
  CHECK_THROWS_AS(read_jsonl(path, {.types = {{"o", ColumnType::text}, {"o.p", ColumnType::real}}}),
                  frugal::SettingsError);
  CHECK_THROWS_AS(read_jsonl(path, {.types = {{"o.when", ColumnType::days}}}),
                  frugal::SettingsError);
}

TEST_CASE("a type for a column that no line has is refused, one for a column of nulls is not") {
  TemporaryFolder const folder;
  auto const path = file(folder, "{\"a\": 1, \"b\": null, \"o\": {\"c\": 2}}\n");
  for (char const* const wrong : {"z", "o.z", "a.z.y"}) {
    CAPTURE(wrong);
    frugal::JsonlSettings const settings{.types = {{wrong, ColumnType::text}}};
    CHECK_THROWS_AS(read_jsonl(path, settings), frugal::Error);
    CHECK_THROWS_AS(frugal::jsonl_to_parquet(path, folder / "a.parquet", settings), frugal::Error);
  }
  CHECK_THROWS_WITH_AS(
      read_jsonl(path, {.types = {{"z", ColumnType::text}, {"b", ColumnType::text}}}),
      doctest::Contains("a.jsonl, `types`): the columns are b, a, o.c"), frugal::SettingsError);
  auto const set = read_jsonl(path, {.types = {{"b", ColumnType::real}}});
  CHECK(set.get(0).is_null("b"));
  CHECK_THROWS_WITH_AS(frugal::jsonl_to_parquet(path, folder / "a.parquet"),
                       doctest::Contains("column b): it has no value"), frugal::DataError);
  CHECK(frugal::jsonl_to_parquet(path, folder / "a.parquet",
                                 {.types = {{"b", ColumnType::real}}}) == 1);
}

TEST_CASE("a line longer than the reader's blocks is read, up to the limit") {
  TemporaryFolder const folder;
  std::string const word(3U << 20, 'x');
  auto const path = file(folder, "{\"s\": \"a\"}\n{\"s\": \"" + word + "\"}\n{\"s\": \"b\"}\n");
  auto const set = read_jsonl(path);
  REQUIRE(set.size() == 3);
  CHECK(set.get(1).text("s") == word);
  CHECK(frugal::jsonl_to_parquet(path, folder / "a.parquet") == 3);
  CHECK(frugal::ParquetSet(folder / "a.parquet").get(1).text("s") == word);
  CHECK_THROWS_WITH_AS(read_jsonl(path, {.most_record_bytes = 1U << 20}),
                       doctest::Contains("Raise most_record_bytes"), frugal::DataError);
}

TEST_CASE("an error in a later block counts its row from the beginning of the file") {
  TemporaryFolder const folder;
  std::string text;
  for (int i = 0; i < 200000; ++i) text += "{\"a\": 12345}\n";
  REQUIRE(text.size() > std::size_t{2} << 20);
  auto const path = file(folder, text + "{\"a\": \"x\"}\n");
  CHECK_THROWS_WITH_AS(read_jsonl(path), doctest::Contains("in row 200000"), frugal::DataError);
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
