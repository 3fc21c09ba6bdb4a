// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: arrow
#include <frugal/data/arrow/csv.hpp>
#include <frugal/data/arrow/parquet_set.hpp>
#include <frugal/data/sample_set.hpp>

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
