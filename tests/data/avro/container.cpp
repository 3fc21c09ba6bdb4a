// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: avro
#include <frugal/data/avro/columns.hpp>
#include <frugal/data/avro/container.hpp>
#include <frugal/data/avro/encoder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using frugal::detail::AvroBlock;
using frugal::detail::AvroEncoder;
using frugal::detail::AvroHeader;
using frugal::detail::AvroInput;
using frugal::detail::AvroRows;

namespace {

std::string const marker = "0123456789abcdef";

AvroInput input(std::string bytes) {
  std::uint64_t const size = bytes.size();
  return {.name = "file",
          .size = size,
          .read = [bytes = std::move(bytes)](std::uint64_t offset, std::size_t wanted) {
            return bytes.substr(static_cast<std::size_t>(offset), wanted);
          }};
}

std::string header(std::string const& codec = "null", std::string const& schema = R"("long")") {
  AvroEncoder out;
  out.raw("Obj\1");
  out.integer(-2);  // a block of the map with its size
  out.integer(99);
  out.bytes("avro.schema");
  out.bytes(schema);
  out.bytes("avro.codec");
  out.bytes(codec);
  out.integer(0);
  out.raw(marker);
  return out.text();
}

std::string block(std::int64_t rows, std::int64_t size, std::string const& content) {
  AvroEncoder out;
  out.integer(rows);
  out.integer(size);
  out.raw(content);
  return out.text();
}

std::vector<AvroBlock> blocks(std::string const& after) {
  auto const file = input(header() + after);
  std::vector<AvroBlock> found;
  frugal::detail::avro_blocks(file, frugal::detail::avro_header(file), found);
  return found;
}

frugal::AvroType type_of(std::string const& schema) {
  auto type = frugal::avro_schema(schema, "file");
  static_cast<void>(frugal::detail::choose_columns(type, {}, "file"));
  return type;
}

}  // namespace

TEST_CASE("a header gives schema, codec and marker") {
  AvroHeader const read = frugal::detail::avro_header(input(header("zstandard") + "rest"));
  CHECK(read.schema == R"("long")");
  CHECK(read.codec == frugal::AvroCodec::zstandard);
  CHECK(read.sync == marker);
  CHECK(read.bytes == header("zstandard").size());
}

TEST_CASE("a header may be long, and its file longer") {
  std::string const rest(200000, 'x');
  std::string const enough = R"({"type": "long", "doc": ")" + std::string(100000, 'd') + R"("})";
  for (std::string const& schema : {std::string(R"("long")"), enough}) {
    AvroHeader const read = frugal::detail::avro_header(input(header("null", schema) + rest));
    CHECK((read.schema == schema));
    CHECK(read.bytes == header("null", schema).size());
  }
}

TEST_CASE("a header that is cut off anywhere is refused") {
  std::string const whole = header();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_THROWS_AS(static_cast<void>(frugal::detail::avro_header(input(whole.substr(0, size)))),
                    frugal::DataError);
  }
}

TEST_CASE(
    "a header without a schema, of an unknown codec, or of claims that cannot be is refused") {
  auto const refused = [](std::string bytes, char const* what) {
    CHECK_THROWS_WITH_AS(static_cast<void>(frugal::detail::avro_header(input(std::move(bytes)))),
                         doctest::Contains(what), frugal::DataError);
  };
  refused(std::string("Obj\1\0", 5) + marker, "the header has no schema");
  refused(header("snappy"), "it is snappy");
  refused("Obj\2" + header().substr(4), "no Avro container file");
  AvroEncoder many;
  many.raw("Obj\1");
  many.integer(std::int64_t{1} << 60);
  refused(many.text(), "is cut off");
  AvroEncoder longest;
  longest.raw("Obj\1");
  longest.integer(INT64_MIN);
  longest.integer(0);
  refused(longest.text(), "too many items");
  refused("Obj\1" + std::string(10, '\xff') + '\1', "more than 64 bits");
}

TEST_CASE("blocks are found from header to header; empty ones are passed over") {
  auto const found =
      blocks(block(2, 2, "ab" + marker) + block(0, 0, marker) + block(1, 3, "abc" + marker));
  REQUIRE(found.size() == 2);
  CHECK(found[0].rows == 2);
  CHECK(found[0].offset == header().size() + 2);
  CHECK(found[1].bytes == 3);
}

TEST_CASE("a block of claims that cannot be names its byte") {
  std::string const at = "file, block 0 at byte " + std::to_string(header().size());
  auto const refused = [&](std::string const& after, char const* what) {
    CHECK_THROWS_WITH_AS(static_cast<void>(blocks(after)), doctest::Contains(what),
                         frugal::DataError);
    CHECK_THROWS_WITH_AS(static_cast<void>(blocks(after)), doctest::Contains(at.c_str()),
                         frugal::DataError);
  };
  refused(block(1, 1, "a" + std::string(16, 'x')), "sync marker");
  refused(block(1, 100, "a" + marker), "the file is cut off");
  refused(block(1, INT64_MAX, "a" + marker), "the file is cut off");
  refused(block(-1, 1, "a" + marker), "a length is negative");
  refused(block(1, -1, "a" + marker), "a length is negative");
  refused(block(2, 1, "a" + marker), "too many rows");
  refused(block(INT64_MAX, 1, "a" + marker), "too many rows");
  refused("\xff", "is cut off");
  refused(block(1, 1, "a" + marker.substr(1)), "the file is cut off");
}

TEST_CASE("rows fill their block exactly") {
  auto const type = type_of(R"("long")");
  AvroRows const rows("\2\4", 2, type, "block");
  CHECK(rows.cells(1, type, 1) == std::vector<frugal::Cell>{frugal::Cell(std::int64_t{2})});
  CHECK_THROWS_WITH_AS(AvroRows("\2\4\6", 2, type, "block"), doctest::Contains("1 of them"),
                       frugal::DataError);
  CHECK_THROWS_WITH_AS(AvroRows("\2", 2, type, "block"), doctest::Contains("fewer bytes than rows"),
                       frugal::DataError);
}

TEST_CASE("values of claims that cannot be are refused before they have memory") {
  auto const refused = [](std::string const& schema, std::string bytes, char const* what) {
    auto const type = type_of(schema);
    CHECK_THROWS_WITH_AS(AvroRows(std::move(bytes), 1, type, "block"), doctest::Contains(what),
                         frugal::DataError);
  };
  AvroEncoder large;
  large.integer(std::int64_t{1} << 62);
  refused(R"("string")", large.text(), "a value is cut off");
  refused(R"({"type": "array", "items": "long"})", large.text(), "items is cut off");
  refused(R"("boolean")", "\2", "neither 0 nor 1");
  refused(R"(["null", "long"])", "\4", "does not exist");
  refused(R"(["null", "long"])", "\1", "does not exist");
  refused(R"({"type": "enum", "name": "e", "symbols": ["a"]})", "\2", "does not exist");
  refused(R"("double")", "1234567", "a value is cut off");
}

TEST_CASE("a list of nothing, however long, ends at once") {
  auto type = frugal::avro_schema(R"({"type": "record", "name": "r", "fields": [
      {"name": "n", "type": {"type": "array", "items": "null"}}, {"name": "x", "type": "long"}]})",
                                  "file");
  static_cast<void>(frugal::detail::choose_columns(type, {"x"}, "file"));
  AvroEncoder out;
  out.integer(std::int64_t{1} << 60);
  out.integer(0);
  out.integer(7);
  AvroRows const rows(out.text(), 1, type, "block");
  CHECK(rows.cells(0, type, 1) == std::vector<frugal::Cell>{frugal::Cell(std::int64_t{7})});
}
