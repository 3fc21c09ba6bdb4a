// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/cache/cache_key.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <string>

namespace frugal_test::data_cache_cache_key {

using frugal::DescribedTransform;
using frugal::detail::cache_key;

struct Lines {
  std::string content;
  std::uint64_t lines = 4;
  std::uint64_t size() const { return lines; }
  std::string get(std::uint64_t index) const { return content + std::to_string(index); }
  std::string identity() const { return content; }
};
struct Upper {
  static constexpr int version = 1;
  std::string text;
  std::string settings() const { return text; }
  std::string operator()(std::string const& line) const { return line; }
};
struct Lower {
  static constexpr int version = 1;
  std::string settings() const { return ""; }
};
struct Newer {
  static constexpr int version = 2;
  std::string settings() const { return ""; }
};
struct Described {
  std::string describe() const { return "described v1"; }
};
struct Vocabulary {
  std::string identity() const { return "hash of a file"; }
};
struct Silent {};
struct VersionAlone {
  static constexpr int version = 1;
};

static_assert(DescribedTransform<Upper> && DescribedTransform<Described>);
static_assert(DescribedTransform<Vocabulary>);
static_assert(!DescribedTransform<Silent> && !DescribedTransform<VersionAlone>);

TEST_CASE("everything that the samples depend on changes the key") {
  std::set<std::string> const keys{
      cache_key(Lines{"a"}, Upper{}, "text"),     cache_key(Lines{"b"}, Upper{}, "text"),
      cache_key(Lines{"a", 5}, Upper{}, "text"),  cache_key(Lines{"a"}, Upper{"x"}, "text"),
      cache_key(Lines{"a"}, Upper{}, "tensor"),   cache_key(Lines{"a"}, Lower{}, "text"),
      cache_key(Lines{"a"}, Newer{}, "text"),     cache_key(Lines{"a"}, Described{}, "text"),
      cache_key(Lines{"a"}, Vocabulary{}, "text")};
  CHECK(keys.size() == 9);
  CHECK(cache_key(Lines{"a"}, Upper{}, "text") == cache_key(Lines{"a"}, Upper{}, "text"));
}

TEST_CASE("parts of a key do not run into each other") {
  // Without lengths, settings that end in the text of the next part would give the same key.
  std::string const set = frugal::detail::key_part("set", "a");
  CHECK(cache_key(Lines{"b"}, Upper{set}, "text") != cache_key(Lines{set + "b"}, Upper{}, "text"));
  CHECK(cache_key(Lines{""}, Upper{"\nset 1 a"}, "text") !=
        cache_key(Lines{"a"}, Upper{""}, "text"));
}

}  // namespace frugal_test::data_cache_cache_key
