// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/json_writer.hpp>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

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

}  // namespace frugal_test::base_json_writer
