// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include <frugal/policy/checkpoint/state_file.hpp>

namespace frugal_test::policy_checkpoint_state_file {

using frugal::Memory;
using frugal::detail::StateFile;

StateFile parsed(std::string const& text) { return StateFile::parse(text, "state.json"); }

std::string why(std::string const& text) {
  try {
    parsed(text);
  } catch (frugal::FormatError const& error) {
    CHECK(error.fault().where == "state.json");
    return error.fault().why;
  }
  return "nothing is wrong";
}

TEST_CASE("a state file gives back every value, bit for bit and of its type") {
  double const payload = std::bit_cast<double>(std::uint64_t{0x7ff8000000001234});
  std::vector<Memory::Value> const values{
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
  file.circumstances = {{"threads", 2}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    file.values.emplace("policy/" + std::to_string(i), values[i]);
  }
  StateFile const read = parsed(file.text());
  CHECK(read.seed == file.seed);
  CHECK(read.seconds == 2.0);
  CHECK(read.recipe == file.recipe);
  CHECK(read.weights == "BF16");
  CHECK(read.circumstances == file.circumstances);
  CHECK(read.version == StateFile::newest_version);
  REQUIRE(read.values.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    Memory::Value const& value = read.values.at("policy/" + std::to_string(i));
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

TEST_CASE("a state file of version 1 has no circumstances, and is known by its number") {
  StateFile file;
  file.recipe = {{"clip", "NoClip"}};
  std::string text = file.text();
  auto const cut = [&](std::string const& part, std::string const& with) {
    auto const at = text.find(part);
    REQUIRE(at != std::string::npos);
    text.replace(at, part.size(), with);
  };
  cut("\"version\": 2", "\"version\": 1");
  cut(" \"circumstances\": {},\n", "");
  StateFile const read = parsed(text);
  CHECK(read.version == 1);
  CHECK(read.circumstances.empty());
  CHECK(read.recipe.at("clip") == "NoClip");
}

TEST_CASE("what is wrong with a state file is named") {
  std::string const good = StateFile{}.text();
  auto const with = [&](std::string const& from, std::string const& to) {
    std::string text = good;
    auto const at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  CHECK(why(good) == "nothing is wrong");
  CHECK(why("") == "it is no JSON object");
  CHECK(why(good.substr(0, good.size() - 3)) == "it is no JSON object");
  CHECK(why(with("frugal state", "frugal")) == R"("format" does not say "frugal state")");
  CHECK(why(with("\"seed\": 0", "\"seed\": -1")) == "\"seed\" is no whole number");
  CHECK(why(with("\"seed\": 0", "\"seeds\": 0")) == "\"seed\" is missing");
  CHECK(why(with("\"seconds\": 0.0", "\"seconds\": {}")) == "\"seconds\" is no number");
  CHECK(why(with("\"recipe\": {}", "\"recipe\": []")) == "\"recipe\" is no object");
  CHECK(why(with("\"recipe\": {}", R"("recipe": {"clip": 1})")) ==
        R"(the recipe's "clip" is no text)");
  CHECK(why(with("\"circumstances\": {}", R"("circumstances": {"threads": -1})")) ==
        "\"threads\" is no whole number");
  CHECK(why(with("\"values\": {}", R"("values": {"a/b": []})")) == R"(the value of "a/b" is none)");
  CHECK(why(with("\"values\": {}", R"("values": {"a": {"bits": "xyz"}})")) == "a number is none");
  CHECK(why(with("\"values\": {}", R"("values": {"a": {"bytes": "0g"}})")) == "a number is none");
  CHECK(why(with("\"values\": {}", R"("values": {"a": {}})")) == "\"bits\" is missing");
  CHECK_THROWS_AS(parsed(with("\"version\": 2", "\"version\": 3")), frugal::NewerFormatError);
}

}  // namespace frugal_test::policy_checkpoint_state_file
