// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/tar_names.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace frugal_test::data_shards_tar_names {

using frugal::detail::is_meta_name;
using frugal::detail::outside_of_file;
using frugal::detail::shown_name;
using frugal::detail::split_member_name;
using frugal::detail::unsafe_name;

std::string split(std::string const& name) {
  auto const parts = split_member_name(name);
  return parts ? std::string(parts->key) + " | " + parts->extension : "none";
}

TEST_CASE("a name is cut at the first dot of its base name") {
  // As webdataset 1.0 cuts them: base_plus_ext of its tariterators.
  CHECK(split("0001.jpg") == "0001 | jpg");
  CHECK(split("a/b.c/0001.seg.png") == "a/b.c/0001 | seg.png");
  CHECK(split("./a.txt") == "./a | txt");
  CHECK(split("a.") == "a | ");
  CHECK(split("a.JPG") == "a | jpg");
  CHECK(split("a\xc3\x84.T\xc3\x84") == "a\xc3\x84 | t\xc3\x84");
}

TEST_CASE("a name without a dot, or that begins with one, belongs to no sample") {
  for (char const* name : {"README", "a.b/README", ".hidden", ".", "", "/", "a/"}) {
    CAPTURE(name);
    CHECK(split(name) == "none");
  }
}

TEST_CASE("members that describe the shard are known by their underscores") {
  CHECK(is_meta_name("__meta__"));
  CHECK(is_meta_name("__MACOSX__/._a.jpg"));
  CHECK(is_meta_name("____"));
  CHECK_FALSE(is_meta_name("__key.txt"));
  CHECK_FALSE(is_meta_name("___"));
  CHECK_FALSE(is_meta_name("a/__meta__/x.txt"));
}

TEST_CASE("names that lead out of their folder are unsafe, and say why") {
  CHECK(unsafe_name("/etc/passwd.txt") == "a member's name is an absolute path");
  for (char const* name : {"..", "../a.txt", "a/../../b.txt", "a/.."}) {
    CAPTURE(name);
    CHECK(unsafe_name(name) == "a member's name leads out of its folder (..)");
  }
  CHECK(unsafe_name("") == "a member has no name");
  CHECK(unsafe_name("a\nb.txt") == "a member's name has control characters");
  CHECK(unsafe_name(std::string("a\0.txt", 6)) == "a member's name has control characters");
  CHECK(unsafe_name(std::string(4097, 'n')).find("4097 bytes") != std::string::npos);
  for (char const* name : {"a..b.txt", "...", "a/...x.txt", "./a.txt"}) {
    CAPTURE(name);
    CHECK(unsafe_name(name).empty());
  }
  CHECK(unsafe_name(std::string(4096, 'n')).empty());
}

TEST_CASE("a member lies in its file, whatever its numbers add up to") {
  auto const most = std::numeric_limits<std::uint64_t>::max();
  CHECK(outside_of_file({512, 488}, 1000).empty());
  CHECK(outside_of_file({1000, 0}, 1000).empty());
  CHECK(outside_of_file({512, 489}, 1000) ==
        "the member has 489 bytes from byte 512 on, and the file ends 488 bytes after it");
  for (auto const& [offset, size] : {std::pair{most, std::uint64_t{0}},
                                     {std::uint64_t{1001}, std::uint64_t{0}},
                                     {std::uint64_t{512}, most},
                                     {most, most}}) {
    CAPTURE(offset);
    CHECK_FALSE(outside_of_file({offset, size}, 1000).empty());
  }
}

TEST_CASE("a name is shown without control characters, and cut at 120 bytes") {
  CHECK(shown_name("a\x1b[2Jb") == "a?[2Jb");
  CHECK(shown_name(std::string(121, 'n')) == std::string(120, 'n') + "...");
}

}  // namespace frugal_test::data_shards_tar_names
