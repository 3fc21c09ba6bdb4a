// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/tables/cell.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
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
