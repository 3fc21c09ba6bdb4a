// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/json_writer.hpp>
#include <frugal/base/utf8.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace frugal_test::base_json_writer {

using frugal::detail::JsonLayout;
using frugal::detail::JsonWriter;

/// One of everything, nested.
std::string document(JsonLayout layout, std::size_t indent = 2) {
  JsonWriter out("", indent);
  out.object(layout).add("text", "a\"b").add("count", std::uint64_t{3}).add("real", 0.5);
  out.add("yes", true).add("no", false).add("none", std::optional<int>());
  out.key("list").array().value(1).value(-2).end();
  out.key("rows").array().object().add("a", 1).add("b", 2).end().object().end().end();
  out.key("empty").array().end();
  return out.str();
}

nlohmann::ordered_json const expected = nlohmann::ordered_json::parse(
    R"({"text":"a\"b","count":3,"real":0.5,"yes":true,"no":false,"none":null,"list":[1,-2],
        "rows":[{"a":1,"b":2},{}],"empty":[]})");

TEST_CASE("the tight and the indented layout are those of a JSON library") {
  CHECK(document(JsonLayout::tight) == expected.dump());
  CHECK(document(JsonLayout::as_around) == expected.dump());
  CHECK(document(JsonLayout::lines) == expected.dump(2));
  CHECK(document(JsonLayout::lines, 1) == expected.dump(1));
}

// As Python's json.dumps writes it.
TEST_CASE("the spaced layout has a blank after commas and colons") {
  CHECK(document(JsonLayout::spaced) ==
        R"({"text": "a\"b", "count": 3, "real": 0.5, "yes": true, "no": false, "none": null, )"
        R"("list": [1, -2], "rows": [{"a": 1, "b": 2}, {}], "empty": []})");
}

TEST_CASE("a layout holds for what is inside, until another is given") {
  JsonWriter out;
  out.object(JsonLayout::lines).key("files").array();
  out.object(JsonLayout::spaced).add("name", "a").add("size", 1).end();
  out.end().add("after", 2);
  CHECK(out.str() ==
        "{\n  \"files\": [\n    {\"name\": \"a\", \"size\": 1}\n  ],\n  \"after\": 2\n}");
}

TEST_CASE("on_line begins a line with the next value or end") {
  JsonWriter tight;
  tight.object().key("rows").array().on_line(1).value(1).on_line(1).value(2).on_line(0);
  CHECK(tight.str() == "{\"rows\":[\n 1,\n 2\n]}");
  JsonWriter spaced;
  spaced.array(JsonLayout::spaced).value(1).on_line(2).value(2).value(3);
  CHECK(spaced.str() == "[1,\n  2, 3]");
}

TEST_CASE("str ends what is open, after the text in front") {
  JsonWriter out("line ");
  out.object().key("a").array().object().add("b", 1);
  CHECK(out.text() == R"(line {"a":[{"b":1)");
  CHECK(out.str() == R"(line {"a":[{"b":1}]})");
}

TEST_CASE("JSON is put in as it is, and a variant by its value") {
  using Value = std::variant<std::uint64_t, double, std::string>;
  JsonWriter out;
  out.array().raw("{}").raw("[1]").value(Value(std::uint64_t{7})).value(Value(std::nan("")));
  out.value(Value(std::string("x")));
  CHECK(out.str() == R"([{},[1],7,null,"x"])");
}

TEST_CASE("any depth is closed in the order in which it was opened") {
  JsonWriter out;
  std::string expected_text;
  for (int i = 0; i < 40; ++i) out.array().object().key("k");
  out.value(0);
  for (int i = 0; i < 40; ++i) expected_text += "[{\"k\":";
  expected_text += '0';
  for (int i = 0; i < 40; ++i) expected_text += "}]";
  CHECK(out.str() == expected_text);
}

using frugal::detail::JsonLine;

nlohmann::json read(JsonLine line) { return nlohmann::json::parse(std::move(line).str()); }

TEST_CASE("a JSON library reads every value back") {
  JsonLine line;
  line.add("text", "step").add("count", std::uint64_t{18446744073709551615U});
  line.add("negative", -7).add("real", 0.1).add("tiny", 5e-324);
  auto const json = read(std::move(line));
  CHECK(json["text"] == "step");
  CHECK(json["count"] == 18446744073709551615U);
  CHECK(json["negative"] == -7);
  CHECK(json["real"].get<double>() == 0.1);
  CHECK(json["tiny"].get<double>() == 5e-324);
}

TEST_CASE("keys keep their order and the object is one line") {
  JsonLine line;
  line.add("b", 1).add("a", 2);
  CHECK(std::move(line).str() == "{\"b\":1,\"a\":2}\n");
}

TEST_CASE("quotes, backslashes and control characters are escaped") {
  std::string text = "a\"b\\c\nd\te";
  text.push_back('\0');
  text.push_back('\x1f');
  JsonLine line;
  line.add(text, text);
  std::string const written = std::move(line).str();
  CHECK(written.find('\n') == written.size() - 1);
  CHECK(nlohmann::json::parse(written)[text] == text);
}

TEST_CASE("numbers that JSON cannot express are null") {
  JsonLine line;
  line.add("nan", std::numeric_limits<double>::quiet_NaN());
  line.add("inf", -std::numeric_limits<double>::infinity());
  auto const json = read(std::move(line));
  CHECK(json["nan"].is_null());
  CHECK(json["inf"].is_null());
}

TEST_CASE("a line with bytes that are not text is still JSON") {
  JsonLine line;
  line.add("path", "runs/\xff\xfe").add("\xc3", 1);
  auto const json = read(std::move(line));
  CHECK(json["path"] == "runs/\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(json["\xef\xbf\xbd"] == 1);
}

TEST_CASE("an object without members is an object") {
  CHECK(std::move(JsonLine()).str() == "{}\n");
}

using frugal::detail::append_json;
using frugal::detail::is_utf8;

/// A JSON library's result; nothing if it rejects the text as invalid UTF-8.
std::optional<std::string> library(std::string const& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (nlohmann::json::type_error const&) {
    return std::nullopt;
  }
}

template <class T>
std::string written(T const& value) {
  std::string out;
  append_json(out, value);
  return out;
}

/// Calls `check` with texts that cover every lead byte and the bounds of every range after it.
template <class Check>
void with_texts(Check&& check) {
  std::vector<unsigned> const tails = {0x00, 0x22, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0};
  for (unsigned first = 0; first < 256; ++first) {
    check(std::string(1, static_cast<char>(first)));
    for (unsigned const second : tails) {
      for (unsigned const third : tails) {
        std::string const three = {static_cast<char>(first), static_cast<char>(second),
                                   static_cast<char>(third)};
        check(three.substr(0, 2));
        check(three);
        check(three + "\x80");
        check(three + "\xbf");
        check("a" + three + "b");
      }
    }
  }
}

TEST_CASE("text is written as a JSON library writes it, and refused if that refuses it") {
  std::size_t good = 0;
  with_texts([&](std::string const& text) {
    auto const theirs = library(text);
    REQUIRE(is_utf8(text) == theirs.has_value());
    if (!theirs) return;
    REQUIRE(written(text) == *theirs);
    ++good;
  });
  CHECK(good > 1000);
}

TEST_CASE("bytes that are not UTF-8 are written as U+FFFD, each by itself") {
  with_texts([](std::string const& text) {
    REQUIRE(written(text) == written(frugal::detail::as_utf8(text)));
  });
}

TEST_CASE("whole numbers are written with all digits") {
  CHECK(written(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(written(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
}

TEST_CASE("numbers read back unchanged, and those that JSON cannot express are null") {
  for (double const number : {0.0, -0.1, 1e300, 5e-324, 123456789.0, 1.0 / 3.0}) {
    CHECK(nlohmann::json::parse(written(number)).get<double>() == number);
  }
  CHECK(written(std::numeric_limits<double>::infinity()) == "null");
  CHECK(written(std::numeric_limits<double>::quiet_NaN()) == "null");
}

}  // namespace frugal_test::base_json_writer
