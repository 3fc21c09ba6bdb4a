// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/checkpoint/safetensors_writer.hpp>

#include "safetensors_files.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace frugal_test::store_safetensors_writer {

using frugal::Dtype;
using frugal::Safetensors;
using frugal::SafetensorsWriter;
using frugal::TensorView;
using namespace store_files;

/// Keeps what is written, and records the pieces.
struct Sink {
  void write(std::span<std::byte const> bytes) {
    text += text_of(bytes);
    pieces.push_back(bytes);
  }
  std::string text;
  std::vector<std::span<std::byte const>> pieces;
};
static_assert(frugal::ByteSink<Sink>);

std::string written(std::vector<TensorView> tensors,
                    SafetensorsWriter::Metadata const& metadata = {}) {
  Sink sink;
  std::size_t data = 0;
  for (TensorView const& tensor : tensors) data += tensor.bytes.size();
  SafetensorsWriter const writer(std::move(tensors), metadata);
  writer.write(sink);
  CHECK(writer.size() == sink.text.size());
  CHECK(sink.text.substr(0, sink.text.size() - data) == writer.header());
  return sink.text;
}

TensorView view(std::string_view name, Dtype dtype, Shape const& shape, std::string const& bytes) {
  return {.name = name, .dtype = dtype, .shape = shape, .bytes = bytes_of(bytes)};
}

frugal::Fault refusal(std::vector<TensorView> tensors,
                      SafetensorsWriter::Metadata const& metadata = {}) {
  try {
    SafetensorsWriter const writer(std::move(tensors), metadata, "out.safetensors");
  } catch (frugal::FormatError const& error) {
    return error.fault();
  }
  return {.what = "nothing was thrown", .where = "", .why = "", .fix = ""};
}

Shape const scalar{};
Shape const one{1};
Shape const four{4};
std::string const byte_text = "x";

TEST_CASE("a file without tensors is a length and an empty object, padded to 8") {
  CHECK(written({}) == little_endian(8) + "{}      ");
}

TEST_CASE("a file is written byte by byte as the reference implementation writes it") {
  // safetensors/src/tensor.rs, test_serialization: attn.0, F32, shape 1 x 2 x 3.
  std::string const data(24, '\0');
  Shape const shape{1, 2, 3};
  CHECK(written({view("attn.0", Dtype::f32, shape, data)}) ==
        little_endian(64) + R"({"attn.0":{"dtype":"F32","shape":[1,2,3],"data_offsets":[0,24]}})" +
            data);
}

TEST_CASE("tensors are written by falling alignment, then by name, in any order of arguments") {
  std::string const two = "xx";
  std::string const eight = "12345678";
  std::vector<TensorView> tensors{
      view("b", Dtype::u8, one, byte_text), view("half", Dtype::bf16, one, two),
      view("a", Dtype::u8, one, byte_text), view("count", Dtype::i64, one, eight),
      view("flag", Dtype::boolean, one, byte_text)};
  std::string const first = written(tensors);
  std::string const file = first;
  Safetensors const read = Safetensors::parse(bytes_of(file), "first");
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < read.size(); ++i) names.push_back(read[i].name);
  CHECK(names == std::vector<std::string_view>{"count", "half", "a", "b", "flag"});
  std::sort(tensors.begin(), tensors.end(), [](auto& a, auto& b) { return a.name < b.name; });
  do {
    CHECK(written(tensors) == first);
  } while (std::next_permutation(tensors.begin(), tensors.end(),
                                 [](auto& a, auto& b) { return a.name < b.name; }));
}

TEST_CASE("names are sorted by their bytes, not by letters") {
  std::string const file =
      written({view("\xc3\xa9", Dtype::u8, one, byte_text), view("z", Dtype::u8, one, byte_text),
               view("Z", Dtype::u8, one, byte_text), view("", Dtype::u8, one, byte_text)});
  Safetensors const read = Safetensors::parse(bytes_of(file), "file");
  CHECK(read[0].name == "");
  CHECK(read[1].name == "Z");
  CHECK(read[3].name == "\xc3\xa9");
}

TEST_CASE("metadata is written first and sorted by key") {
  std::string const header =
      R"({"__metadata__":{"a":"1","format":"pt"},"t":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})";
  std::string const file =
      written({view("t", Dtype::u8, scalar, byte_text)}, {{"format", "pt"}, {"a", "1"}});
  CHECK(file.substr(8, header.size()) == header);
}

TEST_CASE("metadata without tensors is a valid file") {
  CHECK(written({}, {{"k", "v"}}) == little_endian(32) + R"({"__metadata__":{"k":"v"}}      )");
}

TEST_CASE("every tensor is aligned for its type if the file's beginning is") {
  std::string const bytes(24, 'x');
  std::vector<std::string> names;
  std::vector<TensorView> tensors;
  Shape const three{3};
  names.reserve(100);
  for (int i = 0; i <= static_cast<int>(Dtype::u64); ++i) {
    auto const dtype = static_cast<Dtype>(i);
    if (frugal::dtype_bits(dtype) % 8 != 0) continue;
    names.push_back("t" + std::to_string(i));
    tensors.push_back({.name = names.back(),
                       .dtype = dtype,
                       .shape = three,
                       .bytes = bytes_of(bytes).first(3 * frugal::dtype_bits(dtype) / 8)});
  }
  std::string const file = written(tensors);
  REQUIRE(reinterpret_cast<std::uintptr_t>(file.data()) % 8 == 0);
  Safetensors const read = Safetensors::parse(bytes_of(file), "file");
  REQUIRE(read.size() == tensors.size());
  for (std::size_t i = 0; i < read.size(); ++i) CHECK(read[i].aligned());
}

TEST_CASE("a written file is read back: names, types, shapes, bytes and metadata") {
  std::string const data = "0123456789abcdef";
  Shape const square{2, 2};
  Shape const empty{3, 0};
  std::string const none;
  std::string const odd_name("\"\\/\n\t\x01\x7f\0\xf0\x9f\x98\x80", 12);
  std::string const file =
      written({view(odd_name, Dtype::f32, square, data), view("empty", Dtype::f64, empty, none),
               view("scalar", Dtype::f8_e4m3, scalar, byte_text),
               view("packed", Dtype::f4, four, data.substr(0, 2).c_str())},
              {{"\xc3\xa9\n", odd_name}, {"", ""}});
  Safetensors const read = Safetensors::parse(bytes_of(file), "file");
  REQUIRE(read.size() == 4);
  CHECK(text_of(read.at(odd_name).bytes) == data);
  CHECK(shape_of(read.at(odd_name)) == square);
  CHECK(shape_of(read.at("empty")) == empty);
  CHECK(read.at("empty").dtype == Dtype::f64);
  CHECK(read.at("scalar").dtype == Dtype::f8_e4m3);
  CHECK(read.at("packed").bytes.size() == 2);
  CHECK(read.metadata("\xc3\xa9\n") == odd_name);
  CHECK(read.metadata("") == "");
}

TEST_CASE("a large tensor goes to the sink from its memory, in one piece") {
  std::string const large(100'000, 'x');
  Shape const shape{100'000};
  Sink sink;
  SafetensorsWriter const writer(
      {view("large", Dtype::u8, shape, large), view("small", Dtype::u8, one, byte_text)});
  writer.write(sink);
  REQUIRE(sink.pieces.size() == 3);
  CHECK(sink.pieces[1].data() == bytes_of(large).data());
  CHECK(sink.pieces[1].size() == large.size());
}

TEST_CASE("small tensors are gathered into few pieces, and come in order around a large one") {
  std::vector<std::string> names;
  std::vector<std::string> data;
  std::vector<Shape> shapes;
  std::string all;
  int const count = 3000;
  for (int i = 0; i < count; ++i) {
    std::string number = std::to_string(100'000 + i);
    names.push_back("t" + number);
    // Sizes on both sides of the limit for small tensors. More bytes than a gathered piece holds
    // lie between two large tensors, so the next small one must wait for a new piece.
    std::size_t const size = i % 1000 == 7  ? 9000
                             : i % 100 == 3 ? 8192
                                            : static_cast<std::size_t>(i % 90);
    data.emplace_back();
    while (data.back().size() < size) data.back() += number;
    data.back().resize(size);
    shapes.push_back({size});
    all += data.back();
  }
  std::vector<TensorView> tensors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    tensors.push_back(view(names[i], Dtype::u8, shapes[i], data[i]));
  }
  Sink sink;
  SafetensorsWriter const writer(tensors);
  writer.write(sink);
  CHECK(sink.text.size() == writer.size());
  CHECK(sink.text.substr(sink.text.size() - all.size()) == all);
  CHECK(sink.pieces.size() < 30);
  for (std::size_t i = 1; i < sink.pieces.size(); ++i) CHECK(sink.pieces[i].size() <= 65'536);
}

TEST_CASE("a writer writes the tensors' current contents, any number of times") {
  std::string data = "old!";
  SafetensorsWriter const writer({view("t", Dtype::u8, four, data)});
  data.replace(0, 4, "new!");
  Sink sink;
  writer.write(sink);
  CHECK(sink.text.ends_with("new!"));
  Sink again;
  writer.write(again);
  CHECK(again.text == sink.text);
}

TEST_CASE("names, shapes and the list of tensors may be destroyed before the write") {
  std::string const data = "data";
  auto const planned = [&data] {
    std::string const name = "a name that is too long to lie within its object";
    Shape const shape{4};
    return SafetensorsWriter({view(name, Dtype::u8, shape, data)});
  }();
  Sink sink;
  planned.write(sink);
  Safetensors const read = Safetensors::parse(bytes_of(sink.text), "file");
  CHECK(read.at("a name that is too long to lie within its object").bytes.size() == 4);
}

TEST_CASE("a sink's failure reaches the caller, and nothing more is written") {
  struct Full {
    void write(std::span<std::byte const>) {
      if (++calls == 2) throw std::runtime_error("no space");
    }
    int calls = 0;
  } full;
  std::string const large(100'000, 'x');
  Shape const shape{100'000};
  SafetensorsWriter const writer(
      {view("a", Dtype::u8, shape, large), view("b", Dtype::u8, shape, large)});
  CHECK_THROWS_WITH_AS(writer.write(full), "no space", std::runtime_error);
  CHECK(full.calls == 2);
}

TEST_CASE("two tensors with one name are refused, of one type or of two") {
  std::string const two = "xx";
  for (auto const& second :
       {view("t", Dtype::u8, one, byte_text), view("t", Dtype::f16, one, two)}) {
    auto const fault = refusal({view("t", Dtype::u8, one, byte_text), second});
    CHECK(fault.what == "two tensors have one name");
    CHECK(fault.where == "out.safetensors, tensor \"t\"");
  }
}

TEST_CASE("a tensor with the name of the metadata is refused") {
  CHECK(refusal({view("__metadata__", Dtype::u8, one, byte_text)}).what ==
        "the tensor has the name of the metadata");
}

TEST_CASE("bytes that do not fit shape and type are refused, too many and too few") {
  auto const fault = refusal({view("t", Dtype::f32, four, std::string(12, 'x'))});
  CHECK(fault.what == "the tensor's shape does not fit its bytes");
  CHECK(fault.why == "its shape of F32 takes 16 bytes, and 12 are given");
  CHECK(refusal({view("t", Dtype::u8, four, std::string(5, 'x'))}).what == fault.what);
  CHECK(refusal({view("t", Dtype::u8, scalar, std::string())}).what == fault.what);
}

TEST_CASE("a shape whose product overflows, or ends within a byte, is refused") {
  Shape const huge{std::uint64_t{1} << 32, std::uint64_t{1} << 32};
  Shape const three{3};
  CHECK(refusal({view("t", Dtype::u8, huge, std::string())}).what == "the tensor is too large");
  CHECK(refusal({view("t", Dtype::f4, three, std::string(2, 'x'))}).what ==
        "the tensor ends within a byte");
}

TEST_CASE("a name that is not UTF-8 is refused, and so is metadata") {
  auto const fault = refusal({view("\xff", Dtype::u8, one, byte_text)});
  CHECK(fault.what == "a name or a text of the metadata is not UTF-8");
  CHECK(fault.why == "it reads \"\\xff\"");
  for (char const* text : {"\xc0\xaf", "\xed\xa0\x80", "a\xe2\x82"}) {
    CHECK(refusal({view(text, Dtype::u8, one, byte_text)}).what == fault.what);
    CHECK(refusal({}, {{text, ""}}).what == fault.what);
    CHECK(refusal({}, {{"", text}}).what == fault.what);
  }
}

TEST_CASE(
    "a header of more than 100,000,000 bytes is refused, and one of exactly as many accepted") {
  std::string const frame = R"({"__metadata__":{"k":""}})";
  SafetensorsWriter::Metadata metadata;  // reused: copying it would dominate this test
  metadata["k"].assign(100'000'000 - frame.size(), 'x');
  CHECK(SafetensorsWriter({}, metadata).size() == 100'000'008);
  metadata["k"] += 'x';
  CHECK(refusal({}, metadata).what == "the header is too large");
}

}  // namespace frugal_test::store_safetensors_writer
