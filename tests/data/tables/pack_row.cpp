// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/tables/pack_row.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::data_tables_pack_row {

using frugal::Cell;
using frugal::Dtype;
using frugal::Numbers;
using frugal::PackRow;
using frugal::Row;

template <class T>
Numbers list(Dtype dtype, std::vector<T> const& values) {
  return {dtype, {reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T)}};
}

std::string json(Cell cell) {
  auto const sample = PackRow{}(Row({{"c", std::move(cell)}}));
  REQUIRE(sample.fields.size() == 1);
  CHECK(sample.fields[0].extension == "json");
  return sample.fields[0].bytes;
}

std::string field(Cell cell) {
  auto const sample =
      PackRow{.fields = {{"c", "x"}}}(Row({{"other", true}, {"c", std::move(cell)}}));
  return sample.fields.empty() ? "no field"
                               : sample.fields.at(0).extension + ":" + sample.fields[0].bytes;
}

TEST_CASE("a row is one object of JSON, whatever its cells are") {
  CHECK(json({}) == "{\"c\":null}");
  CHECK(json(true) == "{\"c\":true}");
  CHECK(json(std::int64_t{-7}) == "{\"c\":-7}");
  CHECK(json(0.5) == "{\"c\":0.5}");
  CHECK_THROWS_WITH_AS(json(std::nan("")), doctest::Contains("JSON has no NaN"), frugal::DataError);
  CHECK(json(std::string("a\"\n\xc3\xa9")) == "{\"c\":\"a\\\"\\n\xc3\xa9\"}");
  CHECK(json(std::vector<std::string>{"a", "b"}) == "{\"c\":[\"a\",\"b\"]}");
  CHECK(json(std::vector<std::string>{}) == "{\"c\":[]}");
  CHECK(json(list<float>(Dtype::f32, {0.5F, -1.0F})) == "{\"c\":[0.5,-1]}");
  CHECK(json(list<std::int16_t>(Dtype::i16, {3, -4})) == "{\"c\":[3,-4]}");
  CHECK(json(list<std::uint64_t>(Dtype::u64, {UINT64_MAX})) == "{\"c\":[18446744073709551615]}");
  CHECK(json(list<std::uint8_t>(Dtype::u8, {})) == "{\"c\":[]}");
  CHECK(PackRow{}(Row({{"a", std::int64_t{1}}, {"b\"", {}}})).fields[0].bytes ==
        "{\"a\":1,\"b\\\"\":null}");
}

TEST_CASE("columns become fields of their own") {
  CHECK(field(std::string("\xff\xd8", 2)) == "x:\xff\xd8");
  CHECK(field(std::int64_t{12}) == "x:12");
  CHECK(field(true) == "x:1");
  CHECK(field(0.25) == "x:0.25");
  CHECK(field(std::vector<std::string>{"a"}) == "x:[\"a\"]");
  CHECK(field({}) == "no field");
  std::string const npy = field(list<std::int32_t>(Dtype::i32, {5, 6, 7})).substr(2);
  auto const array = frugal::read_npy(std::as_bytes(std::span(npy)), "x");
  CHECK(array.dtype == Dtype::i32);
  CHECK(array.shape == std::vector<std::uint64_t>{3});
}

TEST_CASE("bytes that are no text, and types that JSON lacks, ask for a field of their own") {
  CHECK_THROWS_AS(json(std::string("\xff")), frugal::DataError);
  CHECK_THROWS_AS(json(Numbers(Dtype::f16, "ab")), frugal::DataError);
  PackRow const gone{.fields = {{"gone", "x"}}};
  Row const row({{"c", true}});
  CHECK_THROWS_AS(gone(row), frugal::SettingsError);
}

}  // namespace frugal_test::data_tables_pack_row
