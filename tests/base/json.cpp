// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/json.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace frugal_test::store_json {

using frugal::detail::Json;
using Kind = Json::Kind;

/// Whether another library reads the same value. Looks members up, because that library sorts them.
bool agrees(Json const& ours, nlohmann::json const& theirs) {
  switch (ours.kind()) {
    case Kind::null:
      return theirs.is_null();
    case Kind::boolean:
      return theirs == nlohmann::json(ours.truth());
    case Kind::number:
      if (theirs.is_number_unsigned()) return ours.as_unsigned() == theirs.get<std::uint64_t>();
      if (theirs.is_number_integer()) return ours.as_signed() == theirs.get<std::int64_t>();
      return theirs.is_number_float() && !ours.as_unsigned() && !ours.as_signed() &&
             ours.as_double() == theirs.get<double>();
    case Kind::text:
      return theirs.is_string() && ours.text() == theirs.get<std::string>();
    case Kind::array:
      if (!theirs.is_array() || theirs.size() != ours.items().size()) return false;
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        if (!agrees(ours.items()[i], theirs[i])) return false;
      }
      return true;
    case Kind::object:
      if (!theirs.is_object() || theirs.size() != ours.items().size()) return false;
      for (Json const& member : ours.items()) {
        if (!theirs.contains(member.name()) || !agrees(member, theirs[member.name()])) return false;
      }
      return true;
  }
  return false;
}

void check(std::string const& text) {
  CAPTURE(text);
  auto const theirs = nlohmann::json::parse(text, nullptr, false);
  auto const ours = Json::parse(text);
  REQUIRE(ours.has_value() == !theirs.is_discarded());
  if (ours) CHECK(agrees(*ours, theirs));
}

TEST_CASE("a value is what another library reads, and refused if that refuses it") {
  for (char const* text : {"null",
                           "true",
                           "false",
                           "0",
                           "-0",
                           "1",
                           "-1",
                           "1.0",
                           "1e3",
                           "1E-3",
                           "-2.5e+7",
                           "\"\"",
                           R"("a\"b\\c\/d\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00")",
                           "\"\xc3\xa9\"",
                           "[]",
                           "{}",
                           "[1, [2, [3, {}]], \"4\"]",
                           R"({"a": 1, "b": {"c": [true, null]}, "": 2})",
                           " \t\r\n[ 1 , 2 ]\n",
                           "18446744073709551615",
                           "18446744073709551616",
                           "9223372036854775808",
                           "-9223372036854775808",
                           "-9223372036854775809",
                           "1e308"}) {
    check(text);
  }
  for (std::string const& text : {std::string(),
                                  std::string(" "),
                                  std::string("nul"),
                                  std::string("truex"),
                                  std::string("01"),
                                  std::string("+1"),
                                  std::string(".5"),
                                  std::string("1."),
                                  std::string("1e"),
                                  std::string("0x1"),
                                  std::string("NaN"),
                                  std::string("Infinity"),
                                  std::string("'a'"),
                                  std::string("\"a"),
                                  std::string("\"a\nb\""),
                                  std::string(R"("\x")"),
                                  std::string(R"("\u12")"),
                                  std::string(R"("\ud800")"),
                                  std::string(R"("\ud800\u0041")"),
                                  std::string(R"("\ude00")"),
                                  std::string(R"({"\ude00": 1})"),
                                  std::string("\"\xff\""),
                                  std::string("\"\xc0\xaf\""),
                                  std::string("\"\xed\xa0\x80\""),
                                  std::string("\"\xf4\x90\x80\x80\""),
                                  std::string("[1"),
                                  std::string("[1,]"),
                                  std::string("[,1]"),
                                  std::string("{\"a\"}"),
                                  std::string("{\"a\":}"),
                                  std::string("{\"a\":1,}"),
                                  std::string("{a:1}"),
                                  std::string("{} {}"),
                                  std::string("1 2"),
                                  std::string("[1] // no"),
                                  std::string("\"\0\"", 3),
                                  std::string("\0", 1)}) {
    check(text);
  }
  // The other library ends the text at a NUL and ignores the rest.
  CHECK_FALSE(Json::parse(std::string("1\0", 2)));
  CHECK_FALSE(Json::parse(std::string("1\0 2", 4)));
}

TEST_CASE("a text that ends anywhere, within a character too, is not read past its end") {
  std::string const whole = "{\"\xf0\x9f\x98\x80\": [1.5e10, \"\\ud83d\\ude00\", null]}";
  REQUIRE(Json::parse(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // In its own allocation, so that a sanitizer sees a read past the end.
    std::vector<char> const part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_FALSE(Json::parse(std::string(part.begin(), part.end())));
    std::vector<char> block(part);
    frugal::detail::JsonStream stream(block.data(), block.size());
    rapidjson::BaseReaderHandler<> nobody;
    auto const error = frugal::detail::parse_json(stream, nobody);
    REQUIRE(error);
    CHECK(error->at <= size);
    CHECK_FALSE(error->why.empty());
  }
}

TEST_CASE("every number keeps its bits") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    auto const bits = random();
    auto const value = std::bit_cast<double>(bits);
    if (!std::isfinite(value)) continue;
    // Its shortest digits, and too many of them.
    for (std::string const& digits : {nlohmann::json(value).dump(), [&] {
                                        char text[64];
                                        std::snprintf(text, sizeof text, "%.25e", value);
                                        return std::string(text);
                                      }()}) {
      auto const read = Json::parse(digits);
      REQUIRE(read);
      CHECK(std::bit_cast<std::uint64_t>(read->as_double().value()) == bits);
    }
    CHECK(Json::parse(std::to_string(bits))->as_unsigned() == bits);
    auto const negative = -static_cast<std::int64_t>(bits >> 1U);
    CHECK(Json::parse(std::to_string(negative))->as_signed() == negative);
  }
  CHECK(std::signbit(*Json::parse("-0.0")->as_double()));
  CHECK_FALSE(Json::parse("1e999"));
  CHECK_FALSE(Json::parse("1.8e308").value().as_double());
  CHECK(Json::parse("7")->as_double() == 7);
}

TEST_CASE("a value of another kind is not a number") {
  for (char const* text : {"\"1\"", "null", "true", "[1]", "{\"a\": 1}"}) {
    auto const value = Json::parse(text);
    REQUIRE(value);
    CHECK_FALSE(value->as_unsigned());
    CHECK_FALSE(value->as_signed());
    CHECK_FALSE(value->as_double());
  }
}

TEST_CASE("a member is found by its name; of two with one name the first") {
  auto const value = Json::parse(R"({"a": 1, "b": 2, "a": 3})");
  REQUIRE(value);
  CHECK(value->find("a")->as_unsigned() == 1);
  CHECK(value->find("b")->name() == "b");
  CHECK(value->find("c") == nullptr);
  CHECK(Json::parse("[1]")->find("a") == nullptr);
}

TEST_CASE("a million nested levels are refused, and use no stack") {
  CHECK(Json::parse(std::string(64, '[') + std::string(64, ']')));
  CHECK_FALSE(Json::parse(std::string(65, '[') + std::string(65, ']')));
  CHECK_FALSE(Json::parse(std::string(1'000'000, '[')));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK_FALSE(Json::parse(objects));
}

}  // namespace frugal_test::store_json
