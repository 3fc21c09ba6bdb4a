// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/json_line.hpp>

#include <limits>
#include <nlohmann/json.hpp>

namespace frugal_test::store_json_line {

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

}  // namespace frugal_test::store_json_line
