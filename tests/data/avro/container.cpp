// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: avro
#include <frugal/data/avro/container.hpp>

#include <doctest/doctest.h>

#include <frugal/data/avro/avro_set.hpp>
#include <frugal/data/avro/avro_writer.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal_test::data_avro_decoder {

using frugal::AvroType;
using frugal::Cell;
using frugal::DataError;
using frugal::detail::AvroDecoder;
using frugal::detail::AvroEncoder;
using Kind = AvroType::Kind;

std::string const where = "block";

std::string zigzag(std::int64_t value) {
  AvroEncoder out;
  out.integer(value);
  return out.text();
}

Cell cell(AvroType const& type, std::string_view bytes) {
  AvroDecoder decoder(bytes, where);
  Cell value = decoder.value(type);
  CHECK(decoder.at_end());
  return value;
}

std::string fault(AvroType const& type, std::string_view bytes) {
  try {
    static_cast<void>(AvroDecoder(bytes, where).value(type));
  } catch (DataError const& error) {
    CHECK(error.fault().where.starts_with("block, byte "));
    return error.fault().what;
  }
  return "nothing was thrown";
}

AvroType list_of(AvroType items) {
  AvroType type{.kind = Kind::list};
  type.parts.push_back(std::move(items));
  return type;
}

TEST_CASE("integers are zigzag codes of 7 bits a byte") {
  // The table of the specification, and the ends of the range.
  AvroType const type{.kind = Kind::integer};
  for (auto const& [bytes, value] :
       std::vector<std::pair<std::string, std::int64_t>>{{std::string(1, '\0'), 0},
                                                         {"\1", -1},
                                                         {"\2", 1},
                                                         {"\3", -2},
                                                         {"\x7f", -64},
                                                         {"\x80\1", 64}}) {
    CHECK(cell(type, bytes) == Cell(value));
    CHECK(zigzag(value) == bytes);
  }
  for (std::int64_t const value :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    CHECK(cell(type, zigzag(value)) == Cell(value));
  }
}

TEST_CASE("an int of more than 32 bits is refused, alone and in a list") {
  AvroType const type{.kind = Kind::integer, .narrow = true};
  std::int64_t const least = std::numeric_limits<std::int32_t>::min();
  std::int64_t const most = std::numeric_limits<std::int32_t>::max();
  for (std::int64_t const value : {least, most}) CHECK(cell(type, zigzag(value)) == Cell(value));
  for (std::int64_t const value : {least - 1, most + 1}) {
    CHECK(fault(type, zigzag(value)) == "an int has more than 32 bits");
    CHECK(fault(list_of(type), zigzag(1) + zigzag(value) + zigzag(0)) ==
          "an int has more than 32 bits");
  }
}

TEST_CASE("what a length claims is compared with what is left") {
  AvroType const text{.kind = Kind::bytes};
  CHECK(cell(text, zigzag(3) + "abc") == Cell(std::string("abc")));
  for (std::int64_t const length : {std::int64_t{4}, std::numeric_limits<std::int64_t>::max()}) {
    CHECK(fault(text, zigzag(length) + "abc") == "a value is cut off");
    CHECK(fault(list_of(text), zigzag(length) + "abc").ends_with("items is cut off"));
  }
  CHECK(fault(text, zigzag(-1)) == "a length is negative");
  CHECK(fault(list_of(text), zigzag(std::numeric_limits<std::int64_t>::min()) + zigzag(0)) ==
        "a list has too many items");
  CHECK(fault({.kind = Kind::fixed, .size = ~std::uint64_t{0}}, "abc") == "a value is cut off");
  CHECK(fault({.kind = Kind::f64}, "1234567") == "a value is cut off");
  CHECK(fault({.kind = Kind::integer}, "\xff") == "an integer is cut off");
}

TEST_CASE("a branch or a symbol that does not exist is refused") {
  AvroType either{.kind = Kind::either};
  either.parts = {{.kind = Kind::null}, {.kind = Kind::boolean}};
  CHECK(cell(either, zigzag(0)) == Cell());
  CHECK(cell(either, zigzag(1) + "\1") == Cell(true));
  AvroType const symbol{.kind = Kind::symbol, .symbols = {"red"}};
  for (std::int64_t const index : {-1, 2}) {
    CHECK(fault(either, zigzag(index)).ends_with("does not exist"));
    CHECK(fault(symbol, zigzag(index)).ends_with("does not exist"));
  }
  CHECK(fault({.kind = Kind::boolean}, "\2") == "a boolean is neither 0 nor 1");
}

TEST_CASE("a list comes in blocks, with their sizes or without") {
  AvroType const list = list_of({.kind = Kind::integer});
  std::string const bytes =
      zigzag(1) + zigzag(7) + zigzag(-2) + zigzag(99) + zigzag(8) + zigzag(9) + zigzag(0);
  CHECK(std::get<frugal::Numbers>(cell(list, bytes)).count() == 3);
  // Items without bytes take no time, however many are claimed.
  AvroType const nulls = list_of({.kind = Kind::null});
  std::string const many = zigzag(std::numeric_limits<std::int64_t>::max()) + zigzag(0);
  AvroDecoder decoder(many, where);
  decoder.skip(nulls);
  CHECK(decoder.at_end());
}

}  // namespace frugal_test::data_avro_decoder

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
