// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: avro
#include <frugal/data/avro/avro_writer.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <frugal/data/avro/avro_set.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using frugal::AvroSet;
using frugal::AvroWriter;
using frugal::Cell;
using frugal::Dtype;
using frugal::Numbers;
using frugal::Row;
using frugal_test::support::TemporaryFolder;

namespace frugal_test::avro_writer {

Cell written(std::filesystem::path const& path, std::string const& type, Cell cell) {
  AvroWriter writer(path, type);
  writer.add(Row({{"value", std::move(cell)}}));
  writer.close();
  return AvroSet(path).get(0).cells()[0];
}

TEST_CASE("integers of every size come back") {
  TemporaryFolder const folder;
  AvroWriter writer(folder / "a", R"("long")");
  std::vector<std::int64_t> values{0,
                                   1,
                                   -1,
                                   63,
                                   64,
                                   -64,
                                   -65,
                                   8191,
                                   8192,
                                   INT32_MAX,
                                   INT32_MIN,
                                   std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int64_t>::min()};
  for (std::int64_t const value : values) writer.add(Row({{"value", Cell(value)}}));
  writer.close();
  AvroSet const set(folder / "a");
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(set.get(i).integer("value") == values[i]);
}

TEST_CASE("a union takes the branch that holds the cell") {
  TemporaryFolder const folder;
  std::string const either = R"(["null", "double", "long", "string", "boolean"])";
  int n = 0;
  for (Cell const& cell :
       {Cell(), Cell(std::int64_t{7}), Cell(0.5), Cell(std::string("x")), Cell(true)}) {
    CHECK(written(folder / std::to_string(n++), either, cell) == cell);
  }
  CHECK(written(folder / "n", R"(["null", "double"])", Cell(std::int64_t{7})) == Cell(7.0));
}

TEST_CASE("lists of other widths are written as the schema's") {
  TemporaryFolder const folder;
  Numbers const narrow{.dtype = Dtype::u8, .bytes = "\x01\xff"};
  CHECK(written(folder / "a", R"({"type": "array", "items": "int"})", narrow) ==
        Cell(Numbers{.dtype = Dtype::i32, .bytes = std::string("\1\0\0\0\xff\0\0\0", 8)}));
  CHECK(written(folder / "b", R"({"type": "array", "items": "string"})",
                std::vector<std::string>{}) == Cell(std::vector<std::string>{}));
}

TEST_CASE("a cell that does not fit is refused, and the rows around it are written") {
  TemporaryFolder const folder;
  AvroWriter writer(folder / "a", R"({"type": "record", "name": "r", "fields": [
    {"name": "a", "type": "long"}, {"name": "b", "type": "int"}]})");
  auto const row = [](Cell a, Cell b) { return Row({{"a", std::move(a)}, {"b", std::move(b)}}); };
  writer.add(row(std::int64_t{1}, std::int64_t{2}));
  CHECK_THROWS_WITH_AS(writer.add(row(std::int64_t{1}, std::int64_t{1} << 31)),
                       doctest::Contains("a, row 1, column b"), frugal::DataError);
  CHECK_THROWS_AS(writer.add(row(std::int64_t{1}, std::string("2"))), frugal::DataError);
  CHECK_THROWS_AS(writer.add(row(std::int64_t{1}, Cell())), frugal::DataError);
  CHECK_THROWS_AS(writer.add(Row({{"a", Cell(std::int64_t{1})}})), frugal::SettingsError);
  writer.add(row(std::int64_t{3}, std::int64_t{4}));
  writer.close();
  AvroSet const set(folder / "a");
  REQUIRE(set.size() == 2);
  CHECK(set.get(1).integer("b") == 4);
}

TEST_CASE("a symbol and a fixed of the wrong size are refused") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(written(folder / "a", R"({"type": "enum", "name": "e", "symbols": ["x", "y"]})",
                          std::string("z")),
                  frugal::DataError);
  CHECK_THROWS_AS(
      written(folder / "b", R"({"type": "fixed", "name": "f", "size": 2})", std::string("z")),
      frugal::DataError);
}

TEST_CASE("an invalid schema, and one without end, are refused") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(AvroWriter(folder / "a", "{"), frugal::DataError);
  CHECK_THROWS_AS(AvroWriter(folder / "a", R"("integer")"), frugal::DataError);
  CHECK_THROWS_WITH_AS(AvroWriter(folder / "a", R"({"type": "record", "name": "tree", "fields": [
      {"name": "left", "type": ["null", "tree"]}]})"),
                       doctest::Contains("no end"), frugal::DataError);
  std::string twice = R"("long")";
  for (int i = 0; i < 20; ++i) {
    std::string const name = "r" + std::to_string(i);
    twice = R"({"type": "record", "name": ")" + name + R"(", "fields": [{"name": "a", "type": )" +
            twice + R"(}, {"name": "b", "type": ")" +
            (i == 0 ? "long" : "r" + std::to_string(i - 1)) + R"("}]})";
  }
  CHECK_THROWS_WITH_AS(AvroWriter(folder / "a", twice), doctest::Contains("too large"),
                       frugal::DataError);
  CHECK(frugal_test::support::entries(folder.path()) == 0);
}

TEST_CASE("nothing is left of a file that was not closed, and none is replaced") {
  TemporaryFolder const folder;
  {
    AvroWriter writer(folder / "a", R"("long")");
  }
  CHECK(frugal_test::support::entries(folder.path()) == 0);
  CHECK(written(folder / "a", R"("long")", Cell(std::int64_t{1})) == Cell(std::int64_t{1}));
  CHECK_THROWS_AS(AvroWriter(folder / "a", R"("long")"), frugal::StoreError);
}

TEST_CASE("a number that its column would change is refused") {
  TemporaryFolder const folder;
  int n = 0;
  auto const write = [&](char const* type, Cell cell) {
    return written(folder / std::to_string(n++), type, std::move(cell));
  };
  std::int64_t const large = (std::int64_t{1} << 53) + 1;
  CHECK_THROWS_AS(write(R"("double")", Cell(large)), frugal::DataError);
  CHECK(write(R"("double")", Cell(large - 1)) == Cell(9007199254740992.0));
  CHECK_THROWS_AS(write(R"("float")", Cell(std::int64_t{16777217})), frugal::DataError);
  CHECK(write(R"("float")", Cell(std::int64_t{16777216})) == Cell(16777216.0));
  CHECK_THROWS_AS(write(R"("float")", Cell(1e300)), frugal::DataError);
  CHECK(write(R"("float")", Cell(0.1)) == Cell(static_cast<double>(0.1F)));  // as the schema says
  // A branch that holds it exactly comes before one that rounds.
  CHECK(write(R"(["float", "double"])", Cell(0.1)) == Cell(0.1));
  CHECK(write(R"(["float", "double"])", Cell(0.5)) == Cell(0.5));
  CHECK(write(R"(["float", "double"])", Cell(1e300)) == Cell(1e300));
  CHECK_THROWS_AS(write(R"(["null", "double"])", Cell(large)), frugal::DataError);
  std::int64_t const items[] = {1, large};
  Numbers const list{.dtype = Dtype::i64,
                     .bytes = std::string(reinterpret_cast<char const*>(items), sizeof items)};
  CHECK_THROWS_AS(write(R"({"type": "array", "items": "double"})", list), frugal::DataError);
}

}  // namespace frugal_test::avro_writer
