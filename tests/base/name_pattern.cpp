// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/name_pattern.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace frugal_test::name_pattern {

bool matches(std::string pattern, std::string_view name) {
  return frugal::NamePattern(std::move(pattern)).matches(name);
}

TEST_CASE("a star stands for any text, dots and nothing included") {
  CHECK(matches("encoder.*", "encoder.layer.0.weight"));
  CHECK(matches("encoder.*", "encoder."));
  CHECK(matches("*.weight", "encoder.layer.0.weight"));
  CHECK(matches("*", "anything.at.all"));
  CHECK(matches("*", ""));
  CHECK(matches("encoder.*.attention.*.bias", "encoder.layer.3.attention.query.bias"));
  CHECK(matches("a**b", "ab"));
}

TEST_CASE("a name matches as a whole") {
  CHECK_FALSE(matches("encoder", "encoder.weight"));
  CHECK_FALSE(matches("encoder.*", "encoder"));
  CHECK_FALSE(matches("encoder.*", "decoder.encoder.weight"));
  CHECK_FALSE(matches("*.bias", "encoder.bias_table"));
  CHECK_FALSE(matches("weight", ""));
  CHECK(matches("head.weight", "head.weight"));
}

TEST_CASE("characters that are special elsewhere stand for themselves") {
  CHECK_FALSE(matches("layer.?.weight", "layer.1.weight"));
  CHECK_FALSE(matches("layer.[12].weight", "layer.1.weight"));
  CHECK_FALSE(matches("layer.1", "layerx1"));
  CHECK(matches("a*b", "a*b"));
  CHECK(matches("a*b", "axb*b"));
}

// The definition, by recursion: slow, and obviously right.
bool by_definition(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() == '*') {
    for (std::size_t i = 0; i <= name.size(); ++i) {
      if (by_definition(pattern.substr(1), name.substr(i))) return true;
    }
    return false;
  }
  return !name.empty() && name.front() == pattern.front() &&
         by_definition(pattern.substr(1), name.substr(1));
}

TEST_CASE("all short patterns match what the definition says") {
  auto const nth = [](std::size_t n, std::string_view letters) {
    std::string text;
    for (; n != 0; n /= letters.size() + 1) {
      std::size_t const digit = n % (letters.size() + 1);
      if (digit != 0) text += letters[digit - 1];
    }
    return text;
  };
  std::size_t matched = 0;
  for (std::size_t p = 1; p < 1024; ++p) {
    std::string const pattern = nth(p, "ab*");
    for (std::size_t n = 0; n < 243; ++n) {
      std::string const name = nth(n, "ab");
      bool const expected = by_definition(pattern, name);
      matched += expected ? 1 : 0;
      if (frugal::detail::matches_pattern(pattern, name) == expected) continue;
      FAIL(pattern << " and " << name);
    }
  }
  CHECK(matched > 1000);
}

TEST_CASE("matching is known to the compiler") {
  static_assert(frugal::detail::matches_pattern("encoder.*", "encoder.0.weight"));
  static_assert(!frugal::detail::matches_pattern("encoder.*", "head.weight"));
}

TEST_CASE("an empty pattern is refused") {
  CHECK_THROWS_AS(frugal::NamePattern(""), frugal::SettingsError);
}

}  // namespace frugal_test::name_pattern
