// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: avro
#include <frugal/data/avro/schema.hpp>

#include <doctest/doctest.h>

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
      {"name": "colour", "type": {"type": "enum", "name": "c", "symbols": ["red", "green"]}},
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
