// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: avro
#include <frugal/data/avro/decoder.hpp>

#include <frugal/data/avro/encoder.hpp>

#include <doctest/doctest.h>

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
