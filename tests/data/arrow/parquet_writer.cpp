// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: arrow
#include <frugal/data/arrow/parquet_writer.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <frugal/data/arrow/parquet_set.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

using frugal::Cell;
using frugal::Dtype;
using frugal::Numbers;
using frugal::ParquetWriter;
using frugal::Row;
using frugal_test::support::TemporaryFolder;

TEST_CASE("a list of numbers of every type comes back in its type") {
  TemporaryFolder const folder;
  std::vector<Dtype> const types{Dtype::boolean, Dtype::u8,  Dtype::i8,  Dtype::u16,
                                 Dtype::i16,     Dtype::f16, Dtype::u32, Dtype::i32,
                                 Dtype::f32,     Dtype::u64, Dtype::i64, Dtype::f64};
  std::vector<std::pair<std::string, Cell>> cells;
  for (Dtype const type : types) {
    std::string bytes;
    for (unsigned b = 0; b < 3 * frugal::dtype_bits(type) / 8; ++b) {
      bytes += static_cast<char>(type == Dtype::boolean ? b % 2 : 3 * b + 1);
    }
    cells.emplace_back(frugal::dtype_name(type), Numbers{.dtype = type, .bytes = bytes});
  }
  ParquetWriter writer(folder / "a");
  Row const wrote(cells);
  writer.add(wrote);
  writer.add(wrote);
  writer.close();
  CHECK(frugal::ParquetSet(folder / "a").get(1).cells() == wrote.cells());
}

TEST_CASE("an integer is written to a column of floats, and not the other way") {
  TemporaryFolder const folder;
  {
    ParquetWriter writer(folder / "a");
    writer.add(Row({{"x", Cell(0.5)}}));
    writer.add(Row({{"x", Cell(std::int64_t{2})}}));
    writer.close();
  }
  CHECK(frugal::ParquetSet(folder / "a").get(1).real("x") == 2.0);
  ParquetWriter writer(folder / "b");
  writer.add(Row({{"x", Cell(std::int64_t{2})}}));
  writer.add(Row({{"x", Cell(0.5)}}));
  CHECK_THROWS_WITH_AS(writer.close(), doctest::Contains("the column is int64"), frugal::DataError);
}

TEST_CASE("a column that is null at first gets its type from the first value of its group") {
  TemporaryFolder const folder;
  ParquetWriter writer(folder / "a", {.rows_per_group = 2});
  writer.add(Row({{"x", Cell()}}));
  writer.add(Row({{"x", Cell(std::string("text"))}}));
  writer.close();
  frugal::ParquetSet const set(folder / "a");
  CHECK(set.get(0).is_null("x"));
  CHECK(set.get(1).text("x") == "text");

  ParquetWriter nulls(folder / "b", {.rows_per_group = 2});
  nulls.add(Row({{"x", Cell()}}));
  CHECK_THROWS_WITH_AS(nulls.add(Row({{"x", Cell()}})), doctest::Contains("the type of a column"),
                       frugal::DataError);
}

TEST_CASE("what no reader would take is refused: bytes as text, two columns of one name") {
  TemporaryFolder const folder;
  auto const refused = [&](Row row, char const* what) {
    frugal::ParquetWriter writer(folder / "a.parquet");
    writer.add(std::move(row));
    CHECK_THROWS_WITH_AS(writer.close(), doctest::Contains(what), frugal::DataError);
  };
  std::string const wrong = "\xff";
  refused(Row({{"word", Cell(wrong)}}), "column word): the column was not declared as bytes");
  refused(Row({{"words", Cell(std::vector<std::string>{"a", wrong})}}), "a text is not UTF-8");
  refused(Row({{"x", Cell(std::int64_t{1})}, {"x", Cell(std::int64_t{2})}}),
          "two columns have one name");
  frugal::ParquetWriter writer(folder / "b.parquet", {.binary = {"bytes"}});
  writer.add(Row({{"bytes", Cell(wrong)}, {"word", Cell(std::string("\xc3\xa9"))}}));
  writer.close();
  CHECK(frugal::ParquetSet(folder / "b.parquet").get(0).text("bytes") == wrong);
}

TEST_CASE("an integer that a column of floats does not hold is refused") {
  TemporaryFolder const folder;
  ParquetWriter writer(folder / "a");
  writer.add(Row({{"x", Cell(0.5)}}));
  writer.add(Row({{"x", Cell(std::int64_t{9007199254740993})}}));
  CHECK_THROWS_WITH_AS(writer.close(),
                       doctest::Contains("row 1, column x): it is 9007199254740993"),
                       frugal::DataError);
}

TEST_CASE("a row group ends before it exceeds its bytes, and a row above them is a group") {
  TemporaryFolder const folder;
  ParquetWriter writer(folder / "a", {.bytes_per_group = 1000});
  // Each cell counts its bytes and eight.
  for (std::size_t const size : {492U, 492U, 493U, 492U, 5000U, 1U}) {
    writer.add(Row({{"s", Cell(std::string(size, 'x'))}}));
  }
  writer.close();
  frugal::ParquetSet const set(folder / "a");
  CHECK(set.shard_sizes() == std::vector<std::uint64_t>{2, 1, 1, 1, 1});
  CHECK(set.get(4).text("s").size() == 5000);
  CHECK_THROWS_AS(ParquetWriter(folder / "b", {.bytes_per_group = 0}), frugal::SettingsError);
}

TEST_CASE("a column of bytes that does not exist is refused") {
  TemporaryFolder const folder;
  ParquetWriter writer(folder / "a", {.binary = {"pixel"}});
  writer.add(Row({{"pixels", Cell(std::string("x"))}}));
  CHECK_THROWS_WITH_AS(writer.close(), doctest::Contains("there is no column pixel"),
                       frugal::SettingsError);
}

TEST_CASE("rows of other columns are refused") {
  TemporaryFolder const folder;
  ParquetWriter writer(folder / "a");
  writer.add(Row({{"x", Cell(0.5)}}));
  writer.add(Row({{"y", Cell(0.5)}}));
  CHECK_THROWS_AS(writer.close(), frugal::DataError);
}

TEST_CASE("nothing is left of a file that was not closed, and none is replaced") {
  TemporaryFolder const folder;
  {
    ParquetWriter writer(folder / "a", {.rows_per_group = 1});
    writer.add(Row({{"x", Cell(0.5)}}));
  }
  CHECK(frugal_test::support::entries(folder.path()) == 0);
  ParquetWriter writer(folder / "a");
  writer.add(Row({{"x", Cell(0.5)}}));
  writer.close();
  CHECK_THROWS_AS(ParquetWriter(folder / "a"), frugal::StoreError);
}

TEST_CASE("settings that cannot be are refused") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(ParquetWriter(folder / "a", {.rows_per_group = 0}), frugal::SettingsError);
  CHECK_THROWS_AS(ParquetWriter(folder / "a", {.compression = "rot13"}), frugal::SettingsError);
  CHECK_THROWS_AS(ParquetWriter(folder / "a").close(), frugal::DataError);
}
