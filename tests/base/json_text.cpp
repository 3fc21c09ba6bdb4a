// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/json_text.hpp>
#include <frugal/base/utf8.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace frugal_test::store_json_text {

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
    auto const expected = library(text);
    REQUIRE(is_utf8(text) == expected.has_value());
    if (!expected) return;
    REQUIRE(written(text) == *expected);
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

}  // namespace frugal_test::store_json_text
