// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/record_layout.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace frugal_test::data_shards_record_layout {

using frugal::Dtype;
using frugal::RecordField;
using frugal::RecordLayout;

std::string fault_of(std::vector<RecordField> fields) {
  std::string why;
  CHECK_FALSE(RecordLayout::of(std::move(fields), why));
  return why;
}

TEST_CASE("fields have sizes, and a layout reads as text") {
  std::string why;
  auto const layout = RecordLayout::of({{.name = "a", .dtype = Dtype::u8, .shape = {3}},
                                        {.name = "b", .dtype = Dtype::f32, .shape = {2, 2}},
                                        {.name = "c", .dtype = Dtype::u8, .shape = {}}},
                                       why);
  REQUIRE(layout);
  CHECK(why.empty());
  CHECK(layout->fixed());
  CHECK(layout->fields()[0].bytes == 3);
  CHECK(layout->fields()[1].bytes == 16);
  CHECK(layout->fields()[2].bytes == 1);
  CHECK(layout->text() == "a U8 [3], b F32 [2, 2], c U8 []");
}

TEST_CASE("records without fields are any bytes") {
  CHECK_FALSE(RecordLayout().fixed());
  CHECK(RecordLayout().text() == "bytes");
}

TEST_CASE("impossible layouts are refused with a reason") {
  CHECK(fault_of({}) == "a record has 1 to 256 fields, and this one 0");
  CHECK(fault_of(std::vector<RecordField>(257)).ends_with("and this one 257"));
  CHECK(fault_of({{.name = "a"}, {.name = "a"}}) == "two fields have the name \"a\"");
  // A name is part of the header's JSON.
  for (std::string const name : {"\xff", "\xed\xa0\x80", "\xc3"}) {
    CHECK(fault_of({{.name = name}}) == "the name of a field is not UTF-8");
  }
  CHECK(fault_of({{.name = "a", .dtype = Dtype::f4, .shape = {3}}}) ==
        "the field \"a\" ends within a byte");
  CHECK(fault_of({{.name = "a", .shape = {1ULL << 63, 1ULL << 63}}}) ==
        "the field \"a\" is larger than 64 bits can say");
  for (std::string const name : {"bytes.offsets", "frugal.block_hashes", "__metadata__"}) {
    CHECK(fault_of({{.name = name}}) ==
          "a shard has a tensor or metadata named \"" + name + "\" itself");
  }
  CHECK(fault_of({{.name = "a", .shape = {0}}}) == "a record has no bytes");
}

}  // namespace frugal_test::data_shards_record_layout
