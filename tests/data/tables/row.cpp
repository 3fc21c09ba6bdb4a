// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/tables/row.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::data_tables_cell {

using frugal::Cell;
using frugal::Dtype;
using frugal::Numbers;

TEST_CASE("every kind of cell has its word") {
  std::vector<std::string> kinds;
  for (Cell const& cell :
       {Cell(), Cell(true), Cell(std::int64_t{1}), Cell(0.5), Cell(std::string("a")),
        Cell(Numbers{}), Cell(std::vector<std::string>{})}) {
    kinds.emplace_back(frugal::cell_kind(cell));
  }
  CHECK(kinds == std::vector<std::string>{"null", "a boolean", "an integer",
                                          "a floating-point number", "text", "a list of numbers",
                                          "a list of texts"});
}

TEST_CASE("packed numbers are counted by their type") {
  CHECK(Numbers{.dtype = Dtype::f64, .bytes = std::string(24, 'x')}.count() == 3);
  CHECK(Numbers{.dtype = Dtype::boolean, .bytes = std::string(3, '\1')}.count() == 3);
  CHECK(Numbers{}.count() == 0);
}

TEST_CASE("an unsigned integer is a cell as far as int64 goes") {
  std::uint64_t const most = INT64_MAX;
  CHECK(frugal::detail::unsigned_cell(most, "row 1") == Cell(INT64_MAX));
  CHECK_THROWS_WITH_AS(frugal::detail::unsigned_cell(most + 1, "row 1"),
                       doctest::Contains("9223372036854775808"), frugal::DataError);
}

TEST_CASE("a packed number is the cell of its value, and null where a cell may not hold it") {
  auto const cell = [](Dtype dtype, auto value) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    return frugal::detail::packed_cell(dtype, bytes);
  };
  CHECK(cell(Dtype::u8, std::uint8_t{255}) == Cell(std::int64_t{255}));
  CHECK(cell(Dtype::i8, std::int8_t{-1}) == Cell(std::int64_t{-1}));
  CHECK(cell(Dtype::u16, std::uint16_t{65535}) == Cell(std::int64_t{65535}));
  CHECK(cell(Dtype::i16, std::int16_t{-2}) == Cell(std::int64_t{-2}));
  CHECK(cell(Dtype::u32, std::uint32_t{4294967295}) == Cell(std::int64_t{4294967295}));
  CHECK(cell(Dtype::i32, std::int32_t{-3}) == Cell(std::int64_t{-3}));
  CHECK(cell(Dtype::i64, INT64_MIN) == Cell(std::int64_t{INT64_MIN}));
  CHECK(cell(Dtype::f32, 0.5F) == Cell(0.5));
  CHECK(cell(Dtype::f64, -0.1) == Cell(-0.1));
  CHECK(cell(Dtype::u64, std::uint64_t{1}) == Cell());
  CHECK(cell(Dtype::f16, std::uint16_t{1}) == Cell());
  CHECK(cell(Dtype::boolean, char{1}) == Cell());
}

}  // namespace frugal_test::data_tables_cell

using frugal::Cell;
using frugal::Row;

namespace {

Row sample() {
  auto const head = std::make_shared<frugal::RowHead const>(
      frugal::RowHead{.source = "a.parquet", .columns = {"n", "x", "b", "s", "none", "many"}});
  return Row(head, 12,
             {Cell(std::int64_t{-3}), Cell(2.5), Cell(true), Cell(std::string("word")), Cell(),
              Cell(std::vector<std::string>{"a", "b"})});
}

}  // namespace

TEST_CASE("a row gives its cells by name and kind") {
  Row const row = sample();
  CHECK(row.integer("n") == -3);
  CHECK(row.real("x") == 2.5);
  CHECK(row.real("n") == -3.0);
  CHECK(row.boolean("b"));
  CHECK(row.text("s") == "word");
  CHECK(row.texts("many") == std::vector<std::string>{"a", "b"});
  CHECK(row.number() == 12);
  CHECK(row.where() == "a.parquet, row 12");
}

TEST_CASE("a null is an error without a fallback") {
  Row const row = sample();
  CHECK(row.is_null("none"));
  CHECK_FALSE(row.is_null("n"));
  CHECK_THROWS_WITH_AS(static_cast<void>(row.integer("none")),
                       "frugal: a cell is null (a.parquet, row 12, column none). Give integer() a "
                       "fallback, or ask is_null() first.",
                       frugal::DataError);
  CHECK(row.integer("none", 7) == 7);
  CHECK(row.real("none", 0.5) == 0.5);
  CHECK(row.boolean("none", true));
  CHECK(row.text("none", "-") == "-");
  CHECK(row.integer("n", 7) == -3);
}

TEST_CASE("a cell of another kind names both") {
  CHECK_THROWS_WITH_AS(
      static_cast<void>(sample().integer("s")),
      "frugal: a cell is no integer (a.parquet, row 12, column s): it is text. Call "
      "the accessor of that kind.",
      frugal::DataError);
  CHECK_THROWS_AS(static_cast<void>(sample().integer("x")), frugal::DataError);
  CHECK_THROWS_AS(static_cast<void>(sample().boolean("n", true)), frugal::DataError);
}

TEST_CASE("an unknown column lists those that there are") {
  CHECK_THROWS_WITH_AS(static_cast<void>(sample().cell("label")),
                       "frugal: there is no column label (a.parquet): the columns are n, x, b, s, "
                       "none, many. Name one of them.",
                       frugal::SettingsError);
}

TEST_CASE("a list of numbers counts its items, whatever their width") {
  CHECK(frugal::Numbers{.dtype = frugal::Dtype::f64, .bytes = std::string(24, '\0')}.count() == 3);
  CHECK(frugal::Numbers{.dtype = frugal::Dtype::boolean, .bytes = "\1"}.count() == 1);
}

TEST_CASE("an integer is a real number only if a double holds it") {
  auto const real = [](std::int64_t value) { return Row({{"n", Cell(value)}}).real("n"); };
  CHECK(real(std::int64_t{1} << 53) == 9007199254740992.0);
  CHECK(real((std::int64_t{1} << 53) + 2) == 9007199254740994.0);
  CHECK(real(INT64_MIN) == -9223372036854775808.0);
  CHECK_THROWS_WITH_AS(real((std::int64_t{1} << 53) + 1),
                       doctest::Contains("row 0, column n): it is 9007199254740993"),
                       frugal::DataError);
  CHECK_THROWS_AS(real(INT64_MAX), frugal::DataError);
}

TEST_CASE("a row says the unit and the numbers of its columns, as far as the file does") {
  auto const head = std::make_shared<frugal::RowHead const>(frugal::RowHead{
      .source = "a",
      .columns = {"t", "n"},
      .formats = {{.dtype = frugal::Dtype::i64, .unit = frugal::TimeUnit::millisecond},
                  {.dtype = frugal::Dtype::i8}}});
  Row const row(head, 0, {Cell(std::int64_t{1}), Cell(std::int64_t{2})});
  CHECK((row.unit("t") == frugal::TimeUnit::millisecond));
  CHECK((row.unit("n") == frugal::TimeUnit::none));
  CHECK((row.dtype("n") == frugal::Dtype::i8));
  CHECK((sample().unit("n") == frugal::TimeUnit::none));
  CHECK_FALSE(sample().dtype("n"));
  CHECK_THROWS_AS(static_cast<void>(row.unit("x")), frugal::SettingsError);
}
