// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/text_lines.hpp>

#include <frugal/core/source/sample_set.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"
#include "support/tar_files.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace frugal_test::data_shards_text_lines {

using frugal::TextLines;
using frugal::TextUnit;
using support::TemporaryFolder;
using support::write_bytes;
using Lines = std::vector<std::string>;

static_assert(frugal::IdentifiedSet<TextLines>);

/// Backwards, so that no read finds the next unit by chance.
Lines all(TextLines const& set) {
  Lines out(set.size());
  for (std::uint64_t i = set.size(); i-- > 0;) out[i] = set.get(i);
  return out;
}

Lines lines(std::string const& text, TextUnit unit = TextUnit::line) {
  TemporaryFolder folder;
  return all(TextLines(write_bytes(folder / "t.txt", text), {.unit = unit}));
}

TEST_CASE("lines are those between line feeds, the last without one, too") {
  CHECK(lines("") == Lines{});
  CHECK(lines("\n") == Lines{""});
  CHECK(lines("a") == Lines{"a"});
  CHECK(lines("a\n") == Lines{"a"});
  CHECK(lines("a\n\nb") == Lines{"a", "", "b"});
  CHECK(lines("a\r\nb\r") == Lines{"a", "b\r"});
  CHECK(lines("\r\n\r\n") == Lines{"", ""});
  CHECK(lines("\xef\xbb\xbf"
              "a\n\xef\xbb\xbf"
              "b") == Lines{"a",
                            "\xef\xbb\xbf"
                            "b"});
  CHECK(lines(std::string("a\0b\nc", 5)) == Lines{std::string("a\0b", 3), "c"});
}

TEST_CASE("paragraphs are what empty lines, or lines of blanks, separate") {
  auto const paragraphs = [](std::string const& text) { return lines(text, TextUnit::paragraph); };
  CHECK(paragraphs("") == Lines{});
  CHECK(paragraphs("\n \n\t\n") == Lines{});
  CHECK(paragraphs("a") == Lines{"a"});
  CHECK(paragraphs("\n\na\nb\n\n\n c\n") == Lines{"a\nb", " c"});
  CHECK(paragraphs("a\r\nb\r\n\r\nc") == Lines{"a\r\nb", "c"});
  CHECK(paragraphs("a\n \t\nb\n\n") == Lines{"a", "b"});
}

TEST_CASE("a file may be one sample, an empty one, too") {
  CHECK(lines("a\n\nb\n", TextUnit::file) == Lines{"a\n\nb\n"});
  CHECK(lines("", TextUnit::file) == Lines{""});
}

TEST_CASE("files follow one another, and each sample is found among many") {
  TemporaryFolder folder;
  std::string first, second;
  Lines lines, paragraphs;
  for (int i = 0; i < 1000; ++i) {
    std::string const text(static_cast<std::size_t>(i % 7) + 1, static_cast<char>('a' + i % 26));
    (i < 333 ? first : second) += text + std::to_string(i) + "\n" + (i % 3 == 0 ? "\n" : "");
  }
  auto const paths =
      std::vector{write_bytes(folder / "1.txt", first), write_bytes(folder / "none.txt", ""),
                  write_bytes(folder / "2.txt", second)};
  auto const split = [](std::string const& text, std::string const& by) {
    Lines out;
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + by.size()) {
      end = std::min(text.find(by, at), text.size());
      out.push_back(text.substr(at, end - at));
    }
    return out;
  };
  Lines expected = split(first, "\n"), rest = split(second, "\n");
  TextLines const set(paths);
  CHECK(set.shard_sizes() == std::vector<std::uint64_t>{expected.size(), 0, rest.size()});
  expected.insert(expected.end(), rest.begin(), rest.end());
  CHECK(all(set) == expected);
  expected = split(first, "\n\n");
  rest = split(second, "\n\n");
  if (expected.back().ends_with('\n')) expected.back().pop_back();
  if (rest.back().ends_with('\n')) rest.back().pop_back();
  expected.insert(expected.end(), rest.begin(), rest.end());
  CHECK(all(TextLines(paths, {.unit = TextUnit::paragraph})) == expected);
}

TEST_CASE("a sample is named by its file and byte, also behind a byte order mark") {
  TemporaryFolder folder;
  auto const path = write_bytes(folder / "t.txt",
                                "\xef\xbb\xbf"
                                "ab\n\ncd\n");
  CHECK(TextLines(path).name(2) == path.string() + ", byte 7");
  CHECK(TextLines(path, {.unit = TextUnit::paragraph}).name(1) == path.string() + ", byte 7");
  CHECK_THROWS_AS(TextLines(path).get(3), frugal::DataError);
}

TEST_CASE("the identity follows the file and the unit") {
  TemporaryFolder folder;
  auto const path = write_bytes(folder / "t.txt", "a\nb\n");
  auto const before = TextLines(path).identity();
  CHECK(TextLines(path).identity() == before);
  CHECK(TextLines(path, {.unit = TextUnit::paragraph}).identity() != before);
  write_bytes(path, "a\nbc\n");
  CHECK(TextLines(path).identity() != before);
}

TEST_CASE("a file that is missing is an error, or is skipped and named") {
  TemporaryFolder folder;
  auto const path = write_bytes(folder / "t.txt", "a\n");
  CHECK_THROWS_AS(TextLines(folder / "gone.txt"), frugal::StoreError);
  TextLines const set(std::vector{folder / "gone.txt", path},
                      {.on_damage = frugal::OnDamage::Skip});
  CHECK(all(set) == Lines{"a"});
  CHECK(set.damage().names() == Lines{(folder / "gone.txt").string()});
}

}  // namespace frugal_test::data_shards_text_lines
