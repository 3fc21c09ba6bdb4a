// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/cache/cache_settings.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string>

namespace frugal_test::data_cache_cache_settings {

using frugal::CacheReport;
using frugal::DescribedTransform;
using frugal::detail::cache_key;

TEST_CASE("sizes have the unit that suits them") {
  CacheReport report{.samples = 9, .cached = 3, .bytes_before = 1023, .bytes_after = 1024};
  CHECK(report.text() == "3 of 9 samples: 1023 B before the transform, 1.0 KiB after it");
  report.bytes_before = 0;
  report.bytes_after = std::numeric_limits<std::uint64_t>::max();
  CHECK(report.text() == "3 of 9 samples: 0 B before the transform, 16.0 EiB after it");
}

TEST_CASE("inputs of unknown size are left out") {
  CHECK(CacheReport{.samples = 1, .bytes_after = 3 << 20}.text() ==
        "0 of 1 samples: 3.0 MiB after the transform");
}

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

}  // namespace frugal_test::data_cache_cache_settings
