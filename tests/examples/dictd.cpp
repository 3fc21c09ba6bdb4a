// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/source/sample_set.hpp>

#include "../../examples/dictd.hpp"
#include "support/files.hpp"

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace frugal_test::examples_dictd {

using dictd::Dictionary;
using dictd::Entry;
using dictd::parse_index;

static_assert(frugal::IdentifiedSet<Dictionary>);

std::string why(std::string const& text, std::uint64_t bytes = 1000) {
  try {
    parse_index(text, "x.index", bytes);
  } catch (frugal::DataError const& error) {
    return error.fault().where + ": " + error.fault().why;
  }
  return "nothing was thrown";
}

void gzip_to(std::filesystem::path const& path, std::string const& text) {
  gzFile const file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}

TEST_CASE("numbers are those of dictd's base 64") {
  using dictd::number_of;
  CHECK(number_of("A") == 0);
  CHECK(number_of("/") == 63);
  CHECK(number_of("BA") == 64);
  CHECK(number_of("AAAB") == 1);
  CHECK(number_of("Kj") == 10 * 64 + 35);
  CHECK(number_of("H//////////") == 0x7fff'ffff'ffff'ffffU);
  for (std::string const text : {"", "=", "A ", "I//////////", "AAAAAAAAAAAAAAAAAAAAAAAAAA!"}) {
    CHECK(!number_of(text));
  }
}

TEST_CASE("an index has a headword, an offset and a size in each line") {
  CHECK(parse_index("a b\tC\tD\nx\tA\tB\tthe X\n\tA\tA", "x") ==
        std::vector<Entry>{{"a b", 2, 3}, {"x", 0, 1}, {"", 0, 0}});
  CHECK(parse_index("", "x").empty());
}

TEST_CASE("a line that is none is refused with its number") {
  CHECK(why("a\tA\tB\nb\tA\n") == "x.index, line 2: it has fewer than 3 columns");
  CHECK(why("\n") == "x.index, line 1: it has fewer than 3 columns");
  CHECK(why("a\tA\t\n") == "x.index, line 1: offset and size are not in dictd's base 64");
  CHECK(why("a\t-\tB\n") == "x.index, line 1: offset and size are not in dictd's base 64");
  CHECK(why("a\tA\tB\r\n") == "x.index, line 1: offset and size are not in dictd's base 64");
}

TEST_CASE("an entry beyond the dictionary is refused, also where the sum overflows") {
  CHECK(why("a\tA\tPo\n") == "nothing was thrown");  // all 1,000 bytes
  CHECK(why("a\tB\tPo\n") ==
        "x.index, line 1: the entry ends at byte 1001, and the dictionary has 1000");
  CHECK(why("a\tH//////////\tH//////////\n") != "nothing was thrown");
}

TEST_CASE("a dictionary is a set of its entries, compressed or not") {
  support::TemporaryFolder folder;
  std::string const text = "first entrysecondthird";
  // "1" and "one" share an entry.
  std::ofstream(folder / "x.index") << "one\tA\tL\n1\tA\tL\nthree\tR\tF\ntwo\tL\tG\n";
  std::ofstream(folder / "x.dict") << text;
  for (bool const compressed : {false, true}) {
    if (compressed) gzip_to(folder / "x.dict.dz", text);
    Dictionary const set(folder / "x.index");
    REQUIRE(set.size() == 3);
    CHECK(set.get(0) == "first entry");
    CHECK(set.get(1) == "second");
    CHECK(set.get(2) == "third");
    CHECK(set.name(0) == "1");
    CHECK(set.name(2) == "three");
    Dictionary const copy = set;
    CHECK(copy.get(1) == "second");
    CHECK(copy.identity() == set.identity());
  }
}

TEST_CASE("another text is another identity") {
  support::TemporaryFolder folder;
  std::ofstream(folder / "x.index") << "one\tA\tD\n";
  std::ofstream(folder / "x.dict") << "abc";
  std::string const first = Dictionary(folder / "x.index").identity();
  std::ofstream(folder / "x.dict") << "abd";
  CHECK(Dictionary(folder / "x.index").identity() != first);
}

TEST_CASE("a missing or damaged dictionary is an error that names it") {
  support::TemporaryFolder folder;
  std::ofstream(folder / "x.index") << "one\tA\tD\n";
  CHECK_THROWS_AS(Dictionary(folder / "x.index"), frugal::DataError);
  std::ofstream(folder / "x.dict") << "ab";
  CHECK_THROWS_AS(Dictionary(folder / "x.index"), frugal::DataError);
  gzip_to(folder / "x.dict.dz", std::string(1000, 'x'));
  std::filesystem::resize_file(folder / "x.dict.dz", 15);
  CHECK_THROWS_AS(Dictionary(folder / "x.index"), frugal::DataError);
  std::ofstream(folder / "y.dict") << "abc";
  CHECK_THROWS_AS(Dictionary(folder / "y.index"), frugal::StoreError);
  std::filesystem::create_symlink("z.dict.dz", folder / "z.dict.dz");  // a link to itself
  std::filesystem::create_symlink("z.dict", folder / "z.dict");
  CHECK_THROWS_AS(Dictionary(folder / "z.index"), frugal::DataError);
}

}  // namespace frugal_test::examples_dictd
