// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/checkpoint/safetensors.hpp>

#include "safetensors_files.hpp"

#include <support/files.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::store_safetensors {

using frugal::Dtype;
using frugal::Safetensors;
using namespace store_files;

Safetensors parse(std::string const& file) {
  return Safetensors::parse(bytes_of(file), "test.safetensors");
}

std::vector<std::string> names_of(Safetensors const& tensors) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < tensors.size(); ++i) names.emplace_back(tensors[i].name);
  return names;
}

TEST_CASE("a file of two tensors is read with names, types, shapes and bytes") {
  std::string const file = small();
  Safetensors const tensors = parse(file);
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "a");
  CHECK(tensors[0].dtype == Dtype::f32);
  CHECK(shape_of(tensors[0]) == Shape{2});
  CHECK(text_of(tensors[0].bytes) == file.substr(file.size() - 11, 8));
  CHECK(tensors[1].name == "b");
  CHECK(tensors[1].dtype == Dtype::u8);
  CHECK(shape_of(tensors[1]) == Shape{3});
  CHECK(text_of(tensors[1].bytes) == file.substr(file.size() - 3));
}

TEST_CASE("the example of the reference implementation's documentation is read") {
  // safetensors/src/tensor.rs, documentation of `SafeTensors::deserialize`.
  std::string const file = std::string("<\0\0\0\0\0\0\0", 8) +
                           R"({"test":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}})" +
                           std::string(16, '\0');
  Safetensors const tensors = parse(file);
  CHECK(names_of(tensors) == std::vector<std::string>{"test"});
  CHECK(tensors[0].dtype == Dtype::i32);
  CHECK(shape_of(tensors[0]) == Shape{2, 2});
  CHECK(text_of(tensors[0].bytes) == std::string(16, '\0'));
}

TEST_CASE("the tensors' bytes are those of the file in memory, not copies") {
  std::string const file = small();
  CHECK(parse(file)[1].bytes.data() + 3 == bytes_of(file).data() + file.size());
}

TEST_CASE("a file without tensors is read, with metadata and without") {
  CHECK(parse(file_of("{}")).size() == 0);
  std::string const file = file_of(R"({"__metadata__":{"step":"500"}})");
  CHECK(parse(file).size() == 0);
  CHECK(parse(file).metadata("step") == "500");
  CHECK(parse(file_of(R"({"__metadata__":{}})")).metadata().empty());
}

TEST_CASE("a scalar has no extents and one element") {
  std::string const file = file_of('{' + entry("s", "F64", "[]", "[0,8]") + '}', 8);
  CHECK(shape_of(parse(file)[0]).empty());
  CHECK(parse(file)[0].bytes.size() == 8);
}

TEST_CASE("tensors without elements are read, at the beginning, between others and at the end") {
  std::string const file = file_of(
      '{' + entry("first", "F32", "[0]", "[0,0]") + ',' + entry("a", "U8", "[2]", "[0,2]") + ',' +
          entry("between", "F64", "[3,0,2]", "[2,2]") + ',' + entry("b", "U8", "[1]", "[2,3]") +
          ',' + entry("last", "I8", "[0]", "[3,3]") + '}',
      3);
  Safetensors const tensors = parse(file);
  REQUIRE(tensors.size() == 5);
  CHECK(shape_of(tensors.at("between")) == Shape{3, 0, 2});
  for (char const* name : {"first", "between", "last"}) CHECK(tensors.at(name).bytes.empty());
  CHECK(text_of(tensors.at("b").bytes) == "\2");
}

TEST_CASE("every type of the format is read, with as many bytes as its width says") {
  struct Case {
    char const* name;
    unsigned bytes;  // of 8 elements
  };
  for (auto const& [name, bytes] : std::vector<Case>{
           {"BOOL", 8}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
           {"I8", 8},   {"I16", 16}, {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},
           {"U16", 16}, {"F16", 16}, {"BF16", 16},   {"I32", 32},    {"F8_E4M3FNUZ", 8},
           {"U32", 32}, {"F32", 32}, {"C64", 64},    {"F64", 64},    {"F8_E5M2FNUZ", 8},
           {"I64", 64}, {"U64", 64}}) {
    std::string const header =
        '{' + entry("t", name, "[8]", "[0," + std::to_string(bytes) + "]") + '}';
    std::string const file = file_of(header, bytes);
    Safetensors const tensors = parse(file);
    CHECK(frugal::dtype_name(tensors[0].dtype) == name);
    CHECK(tensors[0].bytes.size() == bytes);
    CHECK(fault_of(file_of(header, bytes - 1)).what == "the file is cut off");
  }
}

TEST_CASE("tensors come in the order of their bytes, whatever the order of the header") {
  std::string const file =
      file_of('{' + entry("c", "U8", "[1]", "[2,3]") + ',' + entry("a", "U8", "[1]", "[1,2]") +
                  ',' + entry("b", "U8", "[1]", "[0,1]") + '}',
              3);
  CHECK(names_of(parse(file)) == std::vector<std::string>{"b", "a", "c"});
  CHECK(text_of(parse(file).at("c").bytes) == "\2");
}

TEST_CASE("the fields of a tensor may stand in any order, with any spaces of JSON between them") {
  std::string const file = file_of(
      "{ \n\"a\" :\t{\"data_offsets\" : [ 0 , 2 ] ,\r\n \"shape\":[ 2\n],\"dtype\":\"U8\"} }  ", 2);
  CHECK(shape_of(parse(file).at("a")) == Shape{2});
}

TEST_CASE("a tensor is found by its name and by no other") {
  std::string const file = small();
  Safetensors const tensors = parse(file);
  REQUIRE(tensors.find("b").has_value());
  CHECK(tensors.find("b")->dtype == Dtype::u8);
  for (char const* name : {"", "A", "a ", "aa", "c", "__metadata__"}) {
    CHECK_FALSE(tensors.find(name).has_value());
  }
}

TEST_CASE("a missing tensor is an error that names it and the file") {
  std::string const file = small();
  try {
    (void)parse(file).at("layer.weight");
    FAIL("nothing was thrown");
  } catch (frugal::FormatError const& error) {
    CHECK(std::string(error.what()) ==
          "frugal: the file does not have the tensor (test.safetensors, tensor \"layer.weight\"): "
          "it has 2 others. Use a file that was written for this model.");
  }
}

TEST_CASE("names may be of any length and any characters, escaped or not") {
  std::string const longest(100'000, 'n');
  std::string const file =
      file_of('{' + entry("", "U8", "[1]", "[0,1]") + ',' +
                  entry(R"(\u00e9\"\\\/\n\u0000\ud83d\ude00)", "U8", "[1]", "[1,2]") + ',' +
                  entry("gewi\xc3\xa7ht", "U8", "[1]", "[2,3]") + ',' +
                  entry(longest, "U8", "[1]", "[3,4]") + '}',
              4);
  Safetensors const tensors = parse(file);
  CHECK(text_of(tensors.at("").bytes) == std::string(1, '\0'));
  CHECK(text_of(tensors.at(std::string("\xc3\xa9\"\\/\n\0\xf0\x9f\x98\x80", 11)).bytes) == "\1");
  CHECK(text_of(tensors.at("gewi\xc3\xa7ht").bytes) == "\2");
  CHECK(text_of(tensors.at(longest).bytes) == "\3");
}

TEST_CASE("a tensor may be called like a field of a tensor") {
  std::string const file = file_of(
      '{' + entry("dtype", "U8", "[1]", "[0,1]") + ',' + entry("shape", "U8", "[1]", "[1,2]") + '}',
      2);
  CHECK(text_of(parse(file).at("shape").bytes) == "\1");
}

TEST_CASE("metadata is a map of texts, sorted by key, wherever it stands in the header") {
  std::string const file =
      file_of('{' + entry("a", "U8", "[1]", "[0,1]") +
                  R"(,"__metadata__":{"format":"pt","dtype":"","\u00e9":"{\"x\":1}"}})",
              1);
  Safetensors const tensors = parse(file);
  CHECK(tensors.metadata("format") == "pt");
  CHECK(tensors.metadata("dtype") == "");
  CHECK(tensors.metadata("\xc3\xa9") == R"({"x":1})");
  CHECK_FALSE(tensors.metadata("Format").has_value());
  CHECK(tensors.metadata() == std::vector<std::pair<std::string_view, std::string_view>>{
                                  {"dtype", ""}, {"format", "pt"}, {"\xc3\xa9", R"({"x":1})"}});
}

TEST_CASE("if the header's length is no multiple of 8, tensors are read and known as unaligned") {
  // 8 bytes of length, then a header of 62 to 69 bytes: the floats are aligned in one of eight.
  int aligned = 0;
  for (std::size_t spaces = 0; spaces < 8; ++spaces) {
    std::string const file =
        file_of('{' + entry("a", "F64", "[1]", "[0,8]") + '}' + std::string(spaces, ' '), 8);
    // The string's bytes are aligned to at least 8: it is too long for the small-string buffer.
    aligned += parse(file)[0].aligned() ? 1 : 0;
    CHECK(text_of(parse(file)[0].bytes) == file.substr(file.size() - 8));
  }
  CHECK(aligned == 1);
}

TEST_CASE("100,000 tensors are each found by their names") {
  std::string header = "{";
  int const count = 100'000;
  for (int i = 0; i < count; ++i) {
    // Neither the header nor the bytes are in name order.
    int const at = static_cast<int>(i * 70'001LL % count);
    header += entry("layer." + std::to_string(i) + ".weight", "I32", "[1]",
                    '[' + std::to_string(4 * at) + ',' + std::to_string(4 * at + 4) + ']') +
              ',';
  }
  header.back() = '}';
  std::string const file = file_of(header, 4 * count);
  Safetensors const tensors = parse(file);
  REQUIRE(tensors.size() == count);
  std::byte const* const data = tensors[0].bytes.data();
  bool right = true;
  for (int i = 0; i < count; ++i) {
    auto const found = tensors.find("layer." + std::to_string(i) + ".weight");
    right = right && found && found->bytes.data() == data + 4 * (i * 70'001LL % count);
  }
  CHECK(right);
  CHECK_FALSE(tensors.find("layer.100000.weight").has_value());
}

TEST_CASE("a header of exactly 100,000,000 bytes is read") {
  std::string file = little_endian(100'000'000) + "{}";
  file.resize(8 + 100'000'000, ' ');
  CHECK(parse(file).size() == 0);
}

TEST_CASE("a file on disk is read as in memory, and can be moved together with its views") {
  support::TemporaryFolder const folder;
  std::ofstream(folder / "model.safetensors", std::ios::binary) << small();
  Safetensors opened = Safetensors::open(folder / "model.safetensors");
  auto const before = opened.at("b");
  Safetensors const moved = std::move(opened);
  CHECK(moved.at("b").bytes.data() == before.bytes.data());
  CHECK(moved.at("b").name.data() == before.name.data());
  CHECK(text_of(before.bytes) == "\10\11\12");
  CHECK(shape_of(before) == Shape{3});
  CHECK(moved.name() == (folder / "model.safetensors").string());
}

TEST_CASE("a damaged file on disk is refused with its path, and an absent one with the call") {
  support::TemporaryFolder const folder;
  std::ofstream(folder / "cut.safetensors", std::ios::binary) << small().substr(0, 100);
  try {
    (void)Safetensors::open(folder / "cut.safetensors");
    FAIL("nothing was thrown");
  } catch (frugal::FormatError const& error) {
    CHECK(error.fault().where == (folder / "cut.safetensors").string() + ", byte 100");
  }
  CHECK_THROWS_AS((void)Safetensors::open(folder / "absent"), frugal::StoreError);
}

}  // namespace frugal_test::store_safetensors
