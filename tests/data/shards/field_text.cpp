// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/field_text.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

namespace frugal_test::data_shards_field_text {

using frugal::DataError;
using frugal::detail::integer_of;
using frugal::detail::json_of;
using frugal::detail::text_of;

TEST_CASE("whole numbers are read as Python's int() reads them") {
  CHECK(integer_of("7", "x") == 7);
  CHECK(integer_of(" -12\n", "x") == -12);
  CHECK(integer_of("+3", "x") == 3);
  CHECK(integer_of("007", "x") == 7);
  CHECK(integer_of("9223372036854775807", "x") == INT64_MAX);
  for (char const* text : {"", " ", "7.0", "1e3", "0x10", "7 8", "+-3", "--3", "seven"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(integer_of(text, "x"), DataError);
  }
  CHECK_THROWS_WITH_AS(integer_of("9223372036854775808", "a.tar, sample 3, field cls"),
                       "frugal: a field's number does not fit into 64 bits (a.tar, sample 3, field "
                       "cls). Check that sample, or leave it out.",
                       DataError);
}

TEST_CASE("text must be UTF-8") {
  CHECK(text_of("caf\xc3\xa9", "x") == "caf\xc3\xa9");
  CHECK_THROWS_AS(text_of("caf\xe9", "x"), DataError);
}

TEST_CASE("JSON is read, and refused with the byte") {
  CHECK(json_of("{\"label\": 3}", "x").find("label")->as_signed() == 3);
  try {
    (void)json_of("{\"label\": }", "x");
    FAIL("nothing was thrown");
  } catch (DataError const& error) {
    CHECK(error.fault().where == "x, byte 10");
  }
}

}  // namespace frugal_test::data_shards_field_text
