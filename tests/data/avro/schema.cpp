// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: avro
#include <frugal/data/avro/schema.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <frugal/data/avro/avro_set.hpp>
#include <frugal/data/avro/avro_writer.hpp>

#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace frugal_test::data_avro_schema {

using frugal::avro_schema;
using frugal::AvroType;
using Kind = AvroType::Kind;

TEST_CASE("a schema that is no record becomes a record of one column") {
  AvroType const type = avro_schema(R"("int")", "file");
  CHECK(type.kind == Kind::record);
  REQUIRE(type.parts.size() == 1);
  CHECK(type.parts[0].name == "value");
  CHECK(type.parts[0].narrow);
}

TEST_CASE("types keep their parts, and names of types are followed") {
  AvroType const type = avro_schema(R"({"type": "record", "name": "r", "fields": [
      {"name": "key", "type": {"type": "fixed", "name": "k", "size": 3}},
      {"name": "other", "type": "k"},
      {"name": "color", "type": {"type": "enum", "name": "c", "symbols": ["red", "green"]}},
      {"name": "some", "type": ["null", {"type": "array", "items": "double"}]}]})",
                                    "file");
  REQUIRE(type.parts.size() == 4);
  CHECK(type.parts[0].size == 3);
  CHECK(type.parts[1].name == "other");
  CHECK(type.parts[1].kind == Kind::fixed);
  CHECK(type.parts[2].symbols == std::vector<std::string>{"red", "green"});
  CHECK(type.parts[3].kind == Kind::either);
  CHECK(type.parts[3].parts[1].parts[0].kind == Kind::f64);
}

TEST_CASE("what takes no bytes is known, so that rows of nothing are refused") {
  CHECK(avro_schema(R"("null")", "file").empty());
  CHECK(avro_schema(R"({"type": "record", "name": "r", "fields": []})", "file").empty());
  CHECK_FALSE(avro_schema(R"(["null"])", "file").empty());  // the branch is a byte
}

TEST_CASE("a schema that is invalid or has no end is refused") {
  CHECK_THROWS_AS(avro_schema("{", "file"), frugal::DataError);
  CHECK_THROWS_AS(avro_schema(R"({"type": "fixed", "name": "f"})", "file"), frugal::DataError);
  CHECK_THROWS_WITH_AS(avro_schema(R"({"type": "record", "name": "r", "fields": [
                           {"name": "next", "type": ["null", "r"]}]})",
                                   "file"),
                       doctest::Contains("too deep or too large"), frugal::DataError);
  // Each record has the one before twice: 2^20 types in 20 lines.
  std::string all = R"({"type": "record", "name": "r0", "fields": [{"name": "a", "type": "int"}]})";
  for (int i = 1; i <= 20; ++i) {
    std::string const before = std::to_string(i - 1);
    all = R"({"type": "record", "name": "r)" + std::to_string(i) +
          R"(", "fields": [{"name": "a", "type": )" + all + R"(}, {"name": "b", "type": "r)" +
          before + R"("}]})";
  }
  CHECK_THROWS_WITH_AS(avro_schema(all, "file"), doctest::Contains("too deep or too large"),
                       frugal::DataError);
}

}  // namespace frugal_test::data_avro_schema

using frugal::Cell;
using frugal::Dtype;
using frugal::Row;
using frugal::TimeUnit;
using frugal::detail::AvroUnits;
using frugal_test::support::TemporaryFolder;

namespace frugal_test::avro_units {

char const* const schema = R"({"type": "record", "name": "r", "fields": [
  {"name": "day", "type": {"type": "int", "logicalType": "date"}},
  {"name": "ms", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
  {"name": "box", "type": {"type": "record", "name": "b", "fields": [
    {"name": "us", "type": {"type": "long", "logicalType": "local-timestamp-micros"}}]}},
  {"name": "again", "type": "b"},
  {"name": "n", "type": "long"},
  {"name": "either", "type": ["int", "double"]},
  {"name": "x", "type": ["float", "null"]}]})";

TEST_CASE("logical types say the units of columns, in unions, records and names as well") {
  AvroUnits const units(schema);
  CHECK((units.of("day") == TimeUnit::day));
  CHECK((units.of("ms") == TimeUnit::millisecond));
  CHECK((units.of("box.us") == TimeUnit::microsecond));
  CHECK((units.of("again.us") == TimeUnit::microsecond));
  CHECK((units.of("n") == TimeUnit::none));
  CHECK((
      AvroUnits(R"({"type": "array", "items": {"type": "long", "logicalType": "timestamp-nanos"}})")
          .of("value") == TimeUnit::nanosecond));
  CHECK((AvroUnits(R"({"type": "bytes", "logicalType": "decimal", "precision": 4})").of("value") ==
         TimeUnit::none));
  CHECK((AvroUnits("no JSON").of("value") == TimeUnit::none));
}

TEST_CASE("a set and its rows say units and numbers of their columns") {
  TemporaryFolder const folder;
  frugal::AvroWriter writer(folder / "a.avro", schema);
  writer.add(Row({{"day", Cell(std::int64_t{20484})},
                  {"ms", Cell()},
                  {"box.us", Cell(std::int64_t{1})},
                  {"again.us", Cell(std::int64_t{2})},
                  {"n", Cell(std::int64_t{3})},
                  {"either", Cell(0.5)},
                  {"x", Cell(0.5)}}));
  writer.close();
  frugal::AvroSet const set(folder / "a.avro",
                            {.columns = {"again.us", "day", "either", "x", "n"}});
  CHECK((set.unit("again.us") == TimeUnit::microsecond));
  CHECK((set.unit("day") == TimeUnit::day));
  CHECK_THROWS_AS(static_cast<void>(set.unit("ms")), frugal::SettingsError);
  Row const row = set.get(0);
  CHECK((row.unit("day") == TimeUnit::day));
  CHECK(row.integer("day") == 20484);
  CHECK((row.dtype("day") == std::optional(Dtype::i32)));
  CHECK((row.dtype("n") == std::optional(Dtype::i64)));
  CHECK((row.dtype("x") == std::optional(Dtype::f32)));
  CHECK_FALSE(row.dtype("either"));
}

TEST_CASE("a decimal is refused with the name of its column, and may be left out") {
  // Written by another library: "n" has the unscaled 1234 = 0x04d2 of 12.34.
  char const* const decimals = R"({"type": "record", "name": "r", "namespace": "shop", "fields": [
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "box", "type": {"type": "record", "name": "b", "fields": [
      {"name": "tax", "type": ["null", {"type": "fixed", "name": "money", "size": 8,
                                        "logicalType": "decimal", "precision": 9, "scale": 2}]}]}},
    {"name": "again", "type": "shop.money"},
    {"name": "all", "type": {"type": "array", "items": "money"}},
    {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "raw", "type": "bytes"}]})";
  AvroUnits const units(decimals);
  CHECK(
      (units.decimals() == std::set<std::string, std::less<>>{"again", "all", "box.tax", "price"}));
  CHECK_NOTHROW(units.require_no_decimal("raw", "file"));
  TemporaryFolder const folder;
  CHECK_THROWS_WITH_AS(frugal::AvroWriter(folder / "a.avro", decimals),
                       doctest::Contains("it is a decimal"), frugal::SettingsError);
  // The schema in the file says decimal; libavro's bytes are the same.
  std::string plain(R"({"type":"record","name":"r","fields":[{"name":"price","type":)"
                    R"({"type":"bytes","logicalTyp_":"decimal","precision":9,"scale":2}},)"
                    R"({"name":"n","type":"long"}]})");
  frugal::AvroWriter writer(folder / "b.avro", plain, {.codec = frugal::AvroCodec::null});
  writer.add(Row({{"price", Cell(std::string("\x04\xd2"))}, {"n", Cell(std::int64_t{7})}}));
  writer.close();
  std::string bytes = frugal_test::support::text_of(folder / "b.avro");
  bytes.replace(bytes.find("logicalTyp_"), 11, "logicalType");
  std::ofstream(folder / "b.avro", std::ios::binary) << bytes;
  CHECK_THROWS_WITH_AS(frugal::AvroSet{folder / "b.avro"},
                       doctest::Contains("b.avro, column price): it is a decimal"),
                       frugal::SettingsError);
  frugal::AvroSet const others(folder / "b.avro", {.columns = {"n"}});
  CHECK(others.get(0).integer("n") == 7);
}

}  // namespace frugal_test::avro_units
