// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/text/vocabulary.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace frugal_test::data_text_vocabulary {

using frugal::Vocabulary;

frugal::Fault fault_of(std::string_view text) {
  try {
    static_cast<void>(Vocabulary::parse(text, "v.txt"));
  } catch (frugal::DataError const& error) {
    return error.fault();
  }
  return {.what = "nothing was thrown", .where = "", .why = "", .fix = ""};
}

TEST_CASE("a token's id is the number of its line, from 0") {
  Vocabulary const vocabulary = Vocabulary::parse("[PAD]\n[UNK]\n\xe4\xbd\xa0\n##s\n");
  CHECK(vocabulary.size() == 4);
  CHECK(vocabulary.find("\xe4\xbd\xa0") == 2);
  CHECK(vocabulary.id("##s") == 3);
  CHECK(vocabulary.token(1) == "[UNK]");
  CHECK_FALSE(vocabulary.find("s").has_value());
}

TEST_CASE("line ends may be CR LF, and the last may be missing") {
  CHECK(Vocabulary::parse("a\r\nb").identity() == Vocabulary::parse("a\nb\n").identity());
}

TEST_CASE("the identity changes with a token, and with their order") {
  CHECK(Vocabulary::parse("a\nb\n").identity() != Vocabulary::parse("b\na\n").identity());
  CHECK(Vocabulary::parse("a\nb\n").identity() != Vocabulary::parse("ab\n").identity());
}

TEST_CASE("a copy outlives the vocabulary that it was copied from") {
  auto const copied = [] {
    Vocabulary const short_lived = Vocabulary::parse("a\nb\n");
    return Vocabulary(short_lived);
  }();
  CHECK(copied.find("b") == 1);
  CHECK(copied.token(0) == "a");
}

TEST_CASE("hostile vocabularies are refused with line and byte") {
  CHECK(fault_of("").what == "the vocabulary is empty");
  CHECK(fault_of("\xef\xbb\xbf[PAD]\n").what == "the vocabulary begins with a byte order mark");
  CHECK(fault_of("a\n\nb\n").what == "a line of the vocabulary is empty");
  CHECK(fault_of("a\n\nb\n").where == "v.txt, line 2, byte 2");
  CHECK(fault_of("a\n\r\n").where == "v.txt, line 2, byte 2");
  CHECK(fault_of("\n").where == "v.txt, line 1, byte 0");
  CHECK(fault_of("a\nb\xff\n").what == "the vocabulary is not UTF-8");
  CHECK(fault_of("a\nb\xff\n").where == "v.txt, line 2, byte 3");
  CHECK(fault_of("a\nb\na\n").what == "a token stands twice in the vocabulary");
  CHECK(fault_of("a\nb\na\n").why == "line 1 has 'a' as well");
  CHECK(fault_of("a\nb\na\n").where == "v.txt, line 3, byte 4");
}

TEST_CASE("a file is read, and its path is in its errors") {
  auto const path = std::filesystem::temp_directory_path() / "frugal_vocabulary_test.txt";
  std::ofstream(path, std::ios::binary) << "a\nb\n";
  CHECK(Vocabulary::read(path).id("b") == 1);
  std::ofstream(path, std::ios::binary) << "a\n\n";
  CHECK_THROWS_WITH_AS(static_cast<void>(Vocabulary::read(path)), doctest::Contains(path.c_str()),
                       frugal::DataError);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(static_cast<void>(Vocabulary::read(path)), frugal::StoreError);
}

TEST_CASE("an id or a token that is not there is refused by name") {
  Vocabulary const vocabulary = Vocabulary::parse("a\nb\n");
  CHECK_THROWS_WITH_AS(static_cast<void>(vocabulary.token(2)),
                       "frugal: no token has the id 2 (a vocabulary of 2 tokens). Give ids from 0 "
                       "to 1.",
                       frugal::DataError);
  CHECK_THROWS_AS(static_cast<void>(vocabulary.token(-1)), frugal::DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(vocabulary.id("[MASK]")),
                       doctest::Contains("the vocabulary has no token '[MASK]'"),
                       frugal::DataError);
}

}  // namespace frugal_test::data_text_vocabulary
