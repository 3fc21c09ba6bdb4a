// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: arrow
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/arrow/csv.hpp>
#include <frugal/data/arrow/parquet_set.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;
using frugal::Cell;
using frugal::ColumnType;
using frugal::read_csv;
using frugal_test::support::TemporaryFolder;

namespace frugal_test::arrow_csv {

static_assert(frugal::IdentifiedSet<frugal::TableSet>);

fs::path file(TemporaryFolder const& folder, std::string const& text) {
  std::ofstream(folder / "a.csv", std::ios::binary) << text;
  return folder / "a.csv";
}

TEST_CASE("types are inferred, and quotes are understood") {
  TemporaryFolder const folder;
  auto const path = file(folder, "n,x,b,s\n1,0.5,true,\"a, \"\"b\"\"\"\n-2,,false,\n");
  auto const set = read_csv(path);
  REQUIRE(set.size() == 2);
  CHECK(set.get(0).cells() == std::vector<Cell>{Cell(std::int64_t{1}), Cell(0.5), Cell(true),
                                                Cell(std::string("a, \"b\""))});
  CHECK(set.get(1).cells() ==
        std::vector<Cell>{Cell(std::int64_t{-2}), Cell(), Cell(false), Cell(std::string())});
  CHECK(set.get(1).where() == path.string() + ", row 1");
  CHECK(frugal::sample_name(set, 1) == set.get(1).where());
}

TEST_CASE("settings that change values are part of what a set is") {
  TemporaryFolder const folder;
  auto const path = file(folder, "label,text\n1,'good'\n0,'bad'\n");
  auto const plain = read_csv(path);
  auto const quoted = read_csv(path, {.quote = '\''});
  CHECK(plain.get(0).cells()[1] == Cell(std::string("'good'")));
  CHECK(quoted.get(0).cells()[1] == Cell(std::string("good")));
  CHECK(plain.identity() != quoted.identity());
  CHECK(plain.identity() == read_csv(path).identity());
  frugal::DataIdentity a;
  frugal::DataIdentity b;
  plain.identify(a);
  quoted.identify(b);
  CHECK(a.values().at("reading") == "delimiter ,, quote \", header true, newlines_in_values false");
  CHECK(a.values() != b.values());
}

TEST_CASE("columns, types, delimiter, quote and header may be set") {
  TemporaryFolder const folder;
  auto const path = file(folder, "07;'a;b'\n08;c\n");
  auto const set = read_csv(path, {.columns = {"word", "code"},
                                   .delimiter = ';',
                                   .quote = '\'',
                                   .header = false,
                                   .names = {"code", "word"},
                                   .types = {{"code", ColumnType::text}}});
  CHECK(set.get(0).cells() == std::vector<Cell>{Cell(std::string("a;b")), Cell(std::string("07"))});
  CHECK(read_csv(path, {.delimiter = ';', .quote = '\'', .header = false}).columns() ==
        std::vector<std::string>{"f0", "f1"});
  CHECK(read_csv(
            path,
            {.delimiter = ';', .quote = '\'', .header = false, .types = {{"f0", ColumnType::real}}})
            .get(1)
            .real("f0") == 8.0);
  CHECK_THROWS_WITH_AS(
      read_csv(path, {.columns = {"y"}, .delimiter = ';', .quote = '\'', .header = false}),
      doctest::Contains("the columns are f0, f1"), frugal::SettingsError);
}

TEST_CASE("damaged files are named, with the row") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(read_csv(folder / "none.csv"), frugal::DataError);
  CHECK_THROWS_AS(read_csv(file(folder, "")), frugal::DataError);
  CHECK_THROWS_AS(read_csv(file(folder, "a,b\n")), frugal::EmptySourceError);
  CHECK_THROWS_WITH_AS(read_csv(file(folder, "a,b\n1,2\n3,4,5\n")),
                       doctest::Contains("Expected 2 columns, got 3"), frugal::DataError);
  CHECK_THROWS_WITH_AS(read_csv(file(folder, "a\n1\nx\n"), {.types = {{"a", ColumnType::integer}}}),
                       doctest::Contains("a.csv"), frugal::DataError);
  CHECK_THROWS_AS(read_csv(file(folder, "a\nx\xff\n"), {.types = {{"a", ColumnType::text}}}),
                  frugal::DataError);
}

TEST_CASE("two columns of one name are refused, unless neither is asked for") {
  TemporaryFolder const folder;
  fs::path const path = folder / "a.csv";
  std::ofstream(path) << "x,y,x\n1,2,3\n";
  for (std::vector<std::string> const& columns :
       {std::vector<std::string>{}, std::vector<std::string>{"x"}}) {
    CHECK_THROWS_WITH_AS(frugal::read_csv(path, {.columns = columns}),
                         doctest::Contains("both are called x"), frugal::DataError);
    CHECK_THROWS_AS(frugal::csv_to_parquet(path, folder / "a.parquet", {.columns = columns}),
                    frugal::DataError);
  }
  CHECK(frugal::read_csv(path, {.columns = {"y"}}).get(0).integer("y") == 2);
}

TEST_CASE("a number that would be read as another number is refused, and its row named") {
  TemporaryFolder const folder;
  auto const convert = [&](fs::path const& from, frugal::CsvSettings const& settings = {}) {
    fs::remove(folder / "a.parquet");
    return frugal::csv_to_parquet(from, folder / "a.parquet", settings);
  };
  for (char const* const text :
       {"a,b\n1,x\n18446744073709551615,y\n", "a,b\n0.5,x\n9007199254740993,y\n",
        "b,a\nx,1\ny,\"-9007199254740993\"\nz,0.5\n", "a,b\n1,x\n1e400,y\n"}) {
    CAPTURE(text);
    auto const path = file(folder, text);
    CHECK_THROWS_WITH_AS(read_csv(path), doctest::Contains("a.csv, row 1, column a"),
                         frugal::DataError);
    CHECK_THROWS_WITH_AS(convert(path), doctest::Contains("a.csv, row 1, column a"),
                         frugal::DataError);
    CHECK_NOTHROW(read_csv(path, {.columns = {"b"}}));
    CHECK(read_csv(path, {.types = {{"a", ColumnType::text}}}).get(1).text("a").size() > 4);
    CHECK_NOTHROW(read_csv(path, {.types = {{"a", ColumnType::real}}}));
  }
  auto const exact = file(folder, "a\n0.5\n18446744073709551616\n-inf\n1e300\n");
  CHECK(read_csv(exact).get(1).real("a") == 18446744073709551616.0);
  CHECK(convert(exact) == 4);
}

TEST_CASE("a wrong number in a later block is found") {
  TemporaryFolder const folder;
  std::string text = "n,x\n";
  for (int i = 0; i < 200000; ++i) text += "0.5," + std::to_string(i) + "\n";
  REQUIRE(text.size() > std::size_t{3} << 19);
  auto const path = file(folder, text + "9007199254740993,1\n");
  CHECK_THROWS_WITH_AS(read_csv(path), doctest::Contains("row 200000, column n"),
                       frugal::DataError);
  CHECK_THROWS_WITH_AS(frugal::csv_to_parquet(path, folder / "a.parquet"),
                       doctest::Contains("row 200000, column n"), frugal::DataError);
}

TEST_CASE("nan is a float, and NA is null") {
  TemporaryFolder const folder;
  auto const set = read_csv(file(folder, "x,y\nnan,1\nNaN,2\nNA,3\n,4\n0.5,5\n"));
  CHECK(std::isnan(set.get(0).real("x")));
  CHECK(std::isnan(set.get(1).real("x")));
  CHECK(set.get(2).is_null("x"));
  CHECK(set.get(3).is_null("x"));
  CHECK(set.get(4).real("x") == 0.5);
}

TEST_CASE("a column without any value needs a type, or to be left out") {
  TemporaryFolder const folder;
  for (char const* const text : {"x,y\n,1\n,2\n", "x,y\nNA,1\nNA,2\n"}) {
    auto const path = file(folder, text);
    CHECK_THROWS_WITH_AS(read_csv(path), doctest::Contains("column x): it has no value"),
                         frugal::DataError);
    CHECK_THROWS_WITH_AS(frugal::csv_to_parquet(path, folder / "a.parquet"),
                         doctest::Contains("column x): it has no value in the first 2 rows"),
                         frugal::DataError);
    CHECK(read_csv(path, {.columns = {"y"}}).get(1).integer("y") == 2);
    CHECK(read_csv(path, {.types = {{"x", ColumnType::real}}}).get(0).is_null("x"));
    CHECK_FALSE(read_csv(path, {.types = {{"x", ColumnType::text}}}).get(0).is_null("x"));
  }
}

TEST_CASE("a blank line is a row in a file of one column, and none in others") {
  TemporaryFolder const folder;
  auto const labels = file(folder, "label\n1\n\n3\n");
  CHECK(read_csv(labels).size() == 3);
  CHECK(read_csv(labels).get(1).is_null("label"));
  CHECK(read_csv(labels).get(2).integer("label") == 3);
  CHECK(read_csv(labels, {.types = {{"label", ColumnType::text}}}).get(1).text("label").empty());
  CHECK(read_csv(labels, {.header = false, .names = {"x"}}).size() == 4);
  CHECK(frugal::csv_to_parquet(labels, folder / "a.parquet") == 3);
  CHECK(frugal::ParquetSet(folder / "a.parquet").get(2).integer("label") == 3);
  CHECK(read_csv(file(folder, "x,y\n1,2\n\n3,4\n")).size() == 2);
}

TEST_CASE("a column of times says its unit, and may be given one") {
  TemporaryFolder const folder;
  // 2026-01-31 12:00:00 UTC is 1769860800 s, and 20484 days and a half.
  auto const whole = file(folder, "t,d,n\n2026-01-31 12:00:00,2026-01-31,1\n");
  auto const set = read_csv(whole);
  CHECK((set.unit("t") == frugal::TimeUnit::second));
  CHECK((set.unit("d") == frugal::TimeUnit::day));
  CHECK((set.unit("n") == frugal::TimeUnit::none));
  CHECK((set.get(0).unit("t") == frugal::TimeUnit::second));
  CHECK(set.get(0).integer("t") == 1769860800);
  CHECK(set.get(0).integer("d") == 20484);
  CHECK_THROWS_AS(static_cast<void>(set.unit("u")), frugal::SettingsError);
  // A fraction anywhere makes it nanoseconds; a given unit stays.
  frugal::CsvSettings const given{.types = {{"t", ColumnType::milliseconds}}};
  CHECK(read_csv(whole, given).get(0).integer("t") == 1769860800000);
  auto const part = file(folder, "t,n\n2026-01-31 12:00:00.5,1\n");
  CHECK((read_csv(part).unit("t") == frugal::TimeUnit::nanosecond));
  CHECK(read_csv(part).get(0).integer("t") == 1769860800500000000);
  CHECK((read_csv(part, given).unit("t") == frugal::TimeUnit::millisecond));
  CHECK(read_csv(part, given).get(0).integer("t") == 1769860800500);
  CHECK_THROWS_AS(read_csv(part, {.types = {{"t", ColumnType::seconds}}}), frugal::DataError);
  auto const zoned = file(folder, "t,n\n2026-01-31T13:00:00+01:00,1\n");
  CHECK(read_csv(zoned, given).get(0).integer("t") == 1769860800000);
}

TEST_CASE("types and names that fit no column are refused") {
  TemporaryFolder const folder;
  auto const path = file(folder, "x,y\n1,2\n");
  frugal::CsvSettings const settings{.types = {{"z", ColumnType::text}}};
  CHECK_THROWS_WITH_AS(read_csv(path, settings), doctest::Contains("the columns are x, y"),
                       frugal::SettingsError);
  CHECK_THROWS_WITH_AS(frugal::csv_to_parquet(path, folder / "a.parquet", settings),
                       doctest::Contains("the columns are x, y"), frugal::SettingsError);
  CHECK_THROWS_WITH_AS(read_csv(path, {.names = {"a", "b"}}), doctest::Contains("Set `header`"),
                       frugal::SettingsError);
  CHECK_THROWS_AS(frugal::csv_to_parquet(path, folder / "a.parquet", {.names = {"a", "b"}}),
                  frugal::SettingsError);
  CHECK_THROWS_AS(frugal::csv_to_parquet(path, folder / "a.parquet", {}, {.binary = {"x"}}),
                  frugal::SettingsError);
  // A type of a column that is not read is no error.
  CHECK_NOTHROW(read_csv(path, {.columns = {"x"}, .types = {{"y", ColumnType::text}}}));
}

TEST_CASE("a row longer than the reader's blocks is read, up to the limit") {
  TemporaryFolder const folder;
  std::string const word(3U << 20, 'x');
  auto const path = file(folder, "n,s\n1,a\n2,\"" + word + "\"\n3,b\n");
  auto const set = read_csv(path);
  REQUIRE(set.size() == 3);
  CHECK(set.get(1).text("s") == word);
  CHECK(set.get(2).integer("n") == 3);
  CHECK(frugal::csv_to_parquet(path, folder / "a.parquet") == 3);
  CHECK(frugal::ParquetSet(folder / "a.parquet").get(1).text("s") == word);
  frugal::CsvSettings const small{.most_record_bytes = 1U << 20};
  CHECK_THROWS_WITH_AS(read_csv(path, small), doctest::Contains("Raise most_record_bytes"),
                       frugal::DataError);
  CHECK_THROWS_WITH_AS(frugal::csv_to_parquet(path, folder / "b.parquet", small),
                       doctest::Contains("Raise most_record_bytes"), frugal::DataError);
}

TEST_CASE("a value that its type does not hold is named with its row, and so is the way out") {
  TemporaryFolder const folder;
  auto const path = file(folder, "a\n1\nx\n");
  CHECK_THROWS_WITH_AS(read_csv(path, {.types = {{"a", ColumnType::integer}}}),
                       doctest::Contains("Row #3: CSV conversion error to int64"),
                       frugal::DataError);
  CHECK_THROWS_WITH_AS(read_csv(path, {.types = {{"a", ColumnType::integer}}}),
                       doctest::Contains("give the column a type in `types`"), frugal::DataError);
}

TEST_CASE("row groups of a converted file are limited in bytes") {
  TemporaryFolder const folder;
  std::string text = "s,t\n";
  for (int i = 0; i < 100; ++i) text += std::string(1000, 'a') + std::to_string(i) + ",x\n";
  auto const path = file(folder, text);
  CHECK(frugal::csv_to_parquet(path, folder / "a.parquet", {}, {.bytes_per_group = 10500}) == 100);
  frugal::ParquetSet const set(folder / "a.parquet");
  // Ten rows of 1002 bytes and more do not fit with their offsets, nine do.
  for (std::uint64_t const size : set.shard_sizes()) CHECK(size < 11);
  CHECK(set.groups() < 30);
  for (std::uint64_t i = 0; i < 100; ++i) {
    CHECK(set.get(i).text("s") == std::string(1000, 'a') + std::to_string(i));
  }
}

TEST_CASE("a file above the limit names the way to read it") {
  TemporaryFolder const folder;
  CHECK_THROWS_WITH_AS(read_csv(file(folder, "a\n1\n"), {.most_bytes = 3}),
                       doctest::Contains("Call csv_to_parquet once"), frugal::SettingsError);
}

TEST_CASE("a large file becomes Parquet block by block") {
  TemporaryFolder const folder;
  std::string text = "n,s\n";
  for (int i = 0; i < 300000; ++i) text += std::to_string(i) + ",w" + std::to_string(i % 7) + "\n";
  REQUIRE(text.size() > std::size_t{2} << 20);
  auto const path = file(folder, text);
  CHECK(frugal::csv_to_parquet(path, folder / "a.parquet", {.most_bytes = 1},
                               {.rows_per_group = 40000}) == 300000);
  frugal::ParquetSet const set(folder / "a.parquet");
  REQUIRE(set.size() == 300000);
  for (std::uint64_t const size : set.shard_sizes()) CHECK(size <= 40000);
  for (std::uint64_t const i : {0U, 39999U, 40000U, 123456U, 299999U}) {
    CHECK(set.get(i).integer("n") == static_cast<std::int64_t>(i));
    CHECK(set.get(i).text("s") == "w" + std::to_string(i % 7));
  }
  CHECK_THROWS_AS(frugal::csv_to_parquet(path, folder / "a.parquet"), frugal::StoreError);

  // The first block says that it is an integer, and a later value is none.
  auto const late = file(folder, text + "x,w\n");
  CHECK_THROWS_AS(frugal::csv_to_parquet(late, folder / "b.parquet"), frugal::DataError);
  CHECK(frugal_test::support::entries(folder.path()) == 2);
  CHECK(frugal::csv_to_parquet(late, folder / "b.parquet", {.types = {{"n", ColumnType::text}}}) ==
        300001);
}

}  // namespace frugal_test::arrow_csv
