// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include <frugal/policy/checkpoint/state_file.hpp>

namespace frugal_test::policy_checkpoint_state_file {

using frugal::StateDict;
using frugal::detail::StateFile;

StateFile parsed(std::string const& text) { return StateFile::parse(text, "state.json"); }

std::string why(std::string const& text) {
  try {
    parsed(text);
  } catch (frugal::FormatError const& error) {
    CHECK(error.fault().where.starts_with("state.json"));
    return error.fault().why;
  }
  return "nothing is wrong";
}

TEST_CASE("a state file returns every value, bit for bit and with its type") {
  double const payload = std::bit_cast<double>(std::uint64_t{0x7ff8000000001234});
  std::vector<StateDict::Value> const values{
      std::monostate{},
      true,
      false,
      std::int64_t{-1},
      std::numeric_limits<std::int64_t>::min(),
      std::uint64_t{0},
      std::numeric_limits<std::uint64_t>::max(),
      0.0,
      -0.0,
      1.0,
      1e300,
      5e-324,
      0.1,
      std::numeric_limits<double>::infinity(),
      payload,
      std::string(),
      std::string("plain \"text\" \\"),
      std::string("\0\xff\n\x7f", 4),
  };
  StateFile file;
  file.seed = std::numeric_limits<std::uint64_t>::max();
  file.seconds = 2;
  file.recipe = {{"optimizer", "AdamW"}, {"precision", "FP32"}};
  file.weights = "BF16";
  file.environment = {{"threads", 2}};
  file.data = {{"order", "Pass"}, {"files", "\xff \"1\""}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    file.values.emplace("policy/" + std::to_string(i), values[i]);
  }
  StateFile const read = parsed(file.text());
  CHECK(read.seed == file.seed);
  CHECK(read.seconds == 2.0);
  CHECK(read.recipe == file.recipe);
  CHECK(read.weights == "BF16");
  CHECK(read.environment == file.environment);
  CHECK(read.data == file.data);
  REQUIRE(read.values.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    StateDict::Value const& value = read.values.at("policy/" + std::to_string(i));
    REQUIRE(value.index() == values[i].index());
    if (auto const* const number = std::get_if<double>(&value)) {
      CHECK(std::bit_cast<std::uint64_t>(*number) ==
            std::bit_cast<std::uint64_t>(std::get<double>(values[i])));
    } else {
      CHECK(value == values[i]);
    }
  }
}

TEST_CASE("a state file is JSON to other readers, also without any value") {
  auto const empty = nlohmann::json::parse(StateFile{}.text());
  CHECK(empty.at("format") == "frugal state");
  CHECK(empty.at("values").empty());
  StateFile file;
  file.values = {{"a", 0.5}, {"b", std::string("\xff")}, {"c", std::nan("")}};
  auto const read = nlohmann::json::parse(file.text());
  CHECK(read.at("values").at("a") == 0.5);
  CHECK(read.at("values").at("b").at("bytes") == "ff");
  CHECK(read.at("values").at("c").at("bits") == "7ff8000000000000");
}

TEST_CASE("faults in a state file are named") {
  std::string const good = StateFile{}.text();
  auto const with = [&](std::string const& from, std::string const& to) {
    std::string text = good;
    auto const at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  CHECK(why(good) == "nothing is wrong");
  CHECK(why("") == "it is not a JSON object");
  CHECK(why(good.substr(0, good.size() - 3)) == "it is not a JSON object");
  CHECK(why(with("frugal state", "frugal")) == R"("format" does not say "frugal state")");
  CHECK(why(with("\"seed\": 0", "\"seed\": -1")) == "\"seed\" is not a whole number");
  CHECK(why(with("\"seed\": 0", "\"seeds\": 0")) == "\"seeds\" is not known");
  CHECK(why(with("\"seed\": 0,", "")) == "\"seed\" is missing");
  CHECK(why(with("\"seconds\": 0.0", "\"seconds\": {}")) == "\"seconds\" is not a number");
  CHECK(why(with("\"recipe\": {}", "\"recipe\": []")) == "\"recipe\" is not an object");
  CHECK(why(with("\"recipe\": {}", R"("recipe": {"clip": 1})")) ==
        R"(the recipe's "clip" is not a string)");
  CHECK(why(with("\"environment\": {}", R"("environment": {"threads": -1})")) ==
        "\"threads\" is not a whole number");
  CHECK(why(with("\"values\": {}", R"("values": {"a/b": []})")) == R"(the value of "a/b" is none)");
  CHECK(why(with("\"values\": {}", R"("values": {"a": {"bits": "xyz"}})")) == "a number is none");
  CHECK(why(with("\"values\": {}", R"("values": {"a": {"bytes": "0g"}})")) == "a number is none");
  CHECK(why(with("\"values\": {}", R"("values": {"a": {}})")) == "\"bits\" is missing");
  CHECK(why(with("\"values\": {}", R"("values": {"a": {"bytes": "0ff"}})")) ==
        "a text ends within a byte");
  CHECK(why(with("\"values\": {}", R"("values": {"a": {"bits": "0", "of": 1}})")) ==
        R"("of" is not known)");
  CHECK(why(with("\"values\": {}", R"("values": {"a": 1, "a": 2})")) == R"("a" is there twice)");
  CHECK(why(with("\"values\": {}", R"("values": {"a": [1, 2], "a.1": 2})")) ==
        R"("a.1" is there twice)");
  CHECK(why(with("\"values\": {}", R"("values": {"a": [1, "b"]})")) ==
        "an array of numbers has another value");
  CHECK(why(with("\"seed\": 0", "\"seed\": 0, \"seed\": 1")) == R"("seed" is there twice)");
  CHECK(why(with("\"seed\": 0", "\"seed\": 0, \"color\": 1")) == R"("color" is not known)");
  CHECK(why(with("\"recipe\": {}", R"("recipe": {"a": "b", "a": "c"})")) ==
        R"("a" is there twice)");
  CHECK(why(with("\"data\": {}", R"("data": {"order": 1})")) ==
        R"(the data's "order" is not a string)");
  CHECK(why(with("\"version\": 3", "\"version\": 0")) == "there was never a version 0");
}

TEST_CASE("a state file of another version is refused, with both versions") {
  auto const of_version = [](std::string const& version) {
    std::string text = StateFile{}.text();
    std::string const here = "\"version\": 3";
    return text.replace(text.find(here), here.size(), "\"version\": " + version);
  };
  CHECK(why(of_version("4")) == "its version is 4, and this library reads version 3");
  CHECK_THROWS_AS(parsed(of_version("4")), frugal::NewerFormatError);
  for (std::string const version : {"1", "2"}) {
    CHECK(why(of_version(version)) ==
          "its version is " + version +
              ", written by an unreleased version of frugal, and this library reads version 3");
  }
}

TEST_CASE("an error in a state file names its byte offset") {
  StateFile file;
  file.values = {{"a", std::uint64_t{1}}};
  std::string text = file.text();
  auto const at = text.find("\"a\": 1") + 5;
  text.replace(at, 1, "[]");
  try {
    parsed(text);
    FAIL("nothing was thrown");
  } catch (frugal::FormatError const& error) {
    CHECK(error.fault().where == "state.json, byte " + std::to_string(at));
  }
}

/// As StateWriter writes it: the length under the path, the items below.
template <class T>
void add_list(StateFile& file, std::string const& path, std::vector<T> const& list) {
  file.values[path] = std::uint64_t{list.size()};
  for (std::size_t i = 0; i < list.size(); ++i) {
    file.values[path + "." + std::to_string(i)] = list[i];
  }
}

StateFile with_lists() {
  StateFile file;
  std::vector<std::uint64_t> numbers(3360);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i * i;
  add_list(file, "seen", numbers);
  add_list<std::int64_t>(file, "signed", {-1, -2});
  add_list<double>(file, "real", {1.0, 0.1, -0.0, std::numeric_limits<double>::infinity()});
  add_list<std::string>(file, "names", {"a", "b"});
  add_list<double>(file, "empty", {});
  // A list of two lists.
  file.values["deep"] = std::uint64_t{2};
  add_list<double>(file, "deep.0", {1.5, 2.5});
  add_list<std::uint64_t>(file, "deep.1", {7});
  file.values["count"] = std::uint64_t{2};  // of missing items
  return file;
}

bool same(StateFile const& one, StateFile const& other) {
  StateDict a, b;
  a.values = one.values;
  b.values = other.values;
  return a == b;
}

TEST_CASE("lists of numbers are arrays in lines of a hundred bytes, and read back unchanged") {
  StateFile const file = with_lists();
  std::string const text = file.text();
  CHECK(same(parsed(text), file));
  CHECK(text.size() <
        40'000);  // 3,360 numbers of up to 8 digits; with a line for each it would be 100 kB
  std::size_t longest = 0, begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    longest = std::max(longest, end - begin);
  }
  CHECK(longest <= 100);
  CHECK(nlohmann::json::parse(text).at("values").at("seen").size() == 3360);
}

}  // namespace frugal_test::policy_checkpoint_state_file
