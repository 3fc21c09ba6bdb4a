// SPDX-License-Identifier: Apache-2.0
// torch-free
// Malformed files: each is refused with its name, the tensor and the byte.
#include <doctest/doctest.h>

#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>

#include "safetensors_files.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::store_safetensors_hostile {

using frugal::Safetensors;
using namespace store_files;

constexpr char whole_number[] = "a whole number from 0 to 2^64 - 1";

/// The fault of a header followed by `n` bytes of data.
frugal::Fault header_fault(std::string const& header, std::size_t n = 0) {
  return fault_of(file_of(header, n));
}

/// The fault of a tensor "t" with these fields, given as JSON.
frugal::Fault tensor_fault(std::string const& dtype, std::string const& shape,
                           std::string const& offsets, std::size_t n) {
  return header_fault(
      R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
      n);
}

std::string where(std::string const& part, std::string const& byte) {
  return "test.safetensors, " + (part.empty() ? "" : part + ", ") + byte;
}

std::string const tensor_t = "tensor \"t\"";

/// Checks that the header is refused for its JSON, at this byte of the file.
void check_json(std::string const& header, std::uint64_t byte) {
  auto const fault = header_fault(header, 8);
  CHECK(fault.what == "the header is not JSON");
  CHECK(fault.where.ends_with("byte " + std::to_string(byte)));
  CHECK(fault.why.starts_with("RapidJSON says \""));
}

void check_expected(frugal::Fault const& fault, std::string const& expected,
                    std::string const& found) {
  CHECK(fault.what == "the header has something else than it should");
  CHECK(fault.why == "expected " + expected + ", found " + found);
}

// ---- the length ---------------------------------------------------------------------------------

TEST_CASE("hostile: an empty file") {
  CHECK(fault_of("").what == "the file is empty");
  CHECK(fault_of("").where == where("", "byte 0"));
}

TEST_CASE("hostile: a file shorter than the header's length") {
  auto const fault = fault_of(std::string("\2\0\0\0\0\0\0", 7));
  CHECK(fault.what == "the file is cut off");
  CHECK(fault.where == where("", "byte 7"));
  CHECK(fault.why == "expected 8 bytes with the header's length, found 7");
}

TEST_CASE("hostile: a header's length and nothing after it") {
  auto const fault = fault_of(little_endian(2));
  CHECK(fault.what == "the file is cut off");
  CHECK(fault.where == where("", "byte 8"));
}

TEST_CASE("hostile: a header one byte longer than the file") {
  auto const fault = fault_of(little_endian(3) + "{}");
  CHECK(fault.what == "the file is cut off");
  CHECK(fault.why == "expected 3 bytes of header, found 2");
}

TEST_CASE("hostile: a header of 100,000,001 bytes, before any of it is read") {
  auto const fault = fault_of(little_endian(100'000'001) + "{}");
  CHECK(fault.what == "this is not a safetensors file, or its header is too large");
  CHECK(fault.where == where("", "byte 0"));
  CHECK(fault.why.find("100000001") != std::string::npos);
}

TEST_CASE("hostile: a header of 2^64 - 1 bytes, whose end overflows") {
  for (std::uint64_t const length : {~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    CHECK(fault_of(little_endian(length) + "{}").what ==
          "this is not a safetensors file, or its header is too large");
  }
}

TEST_CASE("hostile: a header of no bytes") {
  auto const fault = fault_of(little_endian(0) + "{}");
  CHECK(fault.what == "this is not a safetensors file");
  CHECK(fault.why == "its header is empty");
}

TEST_CASE("hostile: a length in big-endian order") {
  CHECK(fault_of(std::string("\0\0\0\0\0\0\0\2{}", 10)).what ==
        "this is not a safetensors file, or its header is too large");
}

TEST_CASE("hostile: files of other formats") {
  // A zip archive as torch.save writes, a pickle, HDF5, GGUF, a gzip stream, a web page.
  for (std::string const& file :
       {std::string("PK\3\4\0\0\10\10\0\0", 10), std::string("\200\2}q\0X\5\0\0\0", 10),
        std::string("\211HDF\r\n\032\n\0\0", 10), std::string("GGUF\3\0\0\0\1\0", 10),
        std::string("\37\213\10\0\0\0\0\0\0\3", 10), std::string("<!DOCTYPE html><html>")}) {
    CHECK(fault_of(file).what.starts_with("this is not a safetensors file"));
  }
}

// ---- the header as JSON -------------------------------------------------------------------------

TEST_CASE("hostile: a header that begins with a space") {
  auto const fault = header_fault(" {}");
  CHECK(fault.what == "this is not a safetensors file");
  CHECK(fault.where == where("", "byte 8"));
  CHECK(fault.why == "a header begins with {, and this one with \" \"");
}

TEST_CASE("hostile: a header that begins with a byte order mark") {
  CHECK(header_fault("\xef\xbb\xbf{}").why ==
        "a header begins with {, and this one with \"\\xef\"");
}

TEST_CASE("hostile: a header that is a JSON array, text or number") {
  for (char const* header : {"[]", "\"a\"", "1", "null"}) {
    CHECK(header_fault(header).what == "this is not a safetensors file");
  }
}

TEST_CASE("hostile: a header that ends in the middle") {
  check_json(R"({"t":{"dtype":"F32")", 8 + 19);
  check_json("{", 9);
}

TEST_CASE("hostile: a header with a comma too many") {
  check_json('{' + entry("t", "U8", "[8]", "[0,8]") + ",}", 8 + 53);
}

TEST_CASE("hostile: a header with a comment") { check_json("{/* */}", 9); }

TEST_CASE("hostile: a second object after the header's") {
  auto const fault = header_fault("{}{}");
  CHECK(fault.what == "the header's object is followed by more than spaces");
  CHECK(fault.where == where("", "byte 10"));
}

TEST_CASE("hostile: a NUL after the header's object, and anything after the NUL") {
  for (std::string const& header : {std::string("{}\0", 3), std::string("{}\0{\"t\":", 8)}) {
    auto const fault = header_fault(header);
    CHECK(fault.what == "the header's object is followed by more than spaces");
    CHECK(fault.where == where("", "byte 10"));
  }
}

TEST_CASE("hostile: a header padded with characters other than spaces") {
  for (char const* header : {"{}\n", "{} \t", "{}\r\n"}) {
    CHECK(header_fault(header).what == "the header's object is followed by more than spaces");
  }
}

TEST_CASE("hostile: a NUL within the header") { check_json(std::string("{\0}", 3), 9); }

TEST_CASE("hostile: a name that is not UTF-8") { check_json("{\"\xff\":{}}", 10); }

TEST_CASE("hostile: a name in overlong UTF-8, which hides a slash") {
  check_json("{\"\xc0\xaf\":{}}", 10);
}

TEST_CASE("hostile: a name with half a surrogate pair") { check_json(R"({"\ud800":{}})", 10); }

TEST_CASE("hostile: a name, or a text, with the other half") {
  auto const fault = header_fault(R"({"a\ude00":{}})");
  CHECK(fault.what == "the header is not JSON");
  CHECK(fault.where == where("", "byte 9"));
  CHECK(header_fault(R"({"__metadata__":{"a":"\udfff"}})").what == "the header is not JSON");
}

TEST_CASE("hostile: a name with a raw line break") { check_json("{\"a\nb\":{}}", 11); }

TEST_CASE("hostile: a name without an end") { check_json("{\"aaaa", 14); }

TEST_CASE("hostile: arrays nested a million deep use no stack") {
  check_expected(header_fault("{\"t\":" + std::string(1'000'000, '[')), "an object", "an array");
  check_expected(tensor_fault("\"U8\"", std::string(1'000'000, '['), "[0,1]", 1), whole_number,
                 "an array");
}

TEST_CASE("hostile: a name that would fill or control the terminal is shown short and plain") {
  std::string const name(1000, 'x');
  auto const fault = header_fault("{\"\\u001b[2J\xc3\xa9" + name + "\":1}");
  CHECK(fault.where ==
        where("tensor \"\\x1b[2J\\xc3\\xa9" + std::string(94, 'x') + "\" and 906 bytes more",
              "byte " + std::to_string(8 + 1 + 2 + 6 + 3 + 2 + 1000 + 1)));
}

// ---- entries ------------------------------------------------------------------------------------

TEST_CASE("hostile: a tensor that is not an object") {
  auto const fault = header_fault(R"({"t":7})");
  check_expected(fault, "an object", "a number");
  CHECK(fault.where == where(tensor_t, byte_of(R"({"t":7})", "7")));
  check_expected(header_fault(R"({"t":"F32"})"), "an object", "a string");
  check_expected(header_fault(R"({"t":[]})"), "an object", "an array");
  check_expected(header_fault(R"({"t":null})"), "an object", "null");
  check_expected(header_fault(R"({"t":true})"), "an object", "a truth value");
}

TEST_CASE("hostile: a tensor without fields") {
  auto const fault = header_fault(R"({"t":{}})");
  CHECK(fault.what == "the tensor has no dtype and shape and data_offsets");
  CHECK(fault.where == where(tensor_t, "byte 14"));
}

TEST_CASE("hostile: a tensor without a type") {
  CHECK(header_fault(R"({"t":{"shape":[],"data_offsets":[0,1]}})", 1).what ==
        "the tensor has no dtype");
}

TEST_CASE("hostile: a tensor without a shape") {
  CHECK(header_fault(R"({"t":{"dtype":"U8","data_offsets":[0,1]}})", 1).what ==
        "the tensor has no shape");
}

TEST_CASE("hostile: a tensor without offsets") {
  CHECK(header_fault(R"({"t":{"dtype":"U8","shape":[]}})", 1).what ==
        "the tensor has no data_offsets");
}

TEST_CASE("hostile: a tensor with a field that the format does not have") {
  std::string const header =
      R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"stride":[1]}})";
  auto const fault = header_fault(header, 1);
  CHECK(fault.what == "the tensor has a field that the format does not know");
  CHECK(fault.where == where(tensor_t, byte_of(header, "\"stride\"")));
  CHECK(fault.why == "expected dtype, shape and data_offsets, found \"stride\"");
}

TEST_CASE("hostile: a tensor with a field twice") {
  for (std::string const& field : {std::string(R"("dtype":"U8")"), std::string(R"("shape":[1])"),
                                   std::string(R"("data_offsets":[0,1])")}) {
    std::string const header =
        R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],)" + field + "}}";
    auto const fault = header_fault(header, 1);
    CHECK(fault.what == "the tensor has " + field.substr(1, field.find('"', 1) - 1) + " twice");
    CHECK(fault.where == where(tensor_t, "byte " + std::to_string(8 + header.rfind(field))));
  }
}

TEST_CASE("hostile: two tensors with one name") {
  std::string const header = '{' + entry("t", "U8", "[1]", "[0,1]") + ',' +
                             entry("u", "U8", "[1]", "[1,2]") + ',' +
                             entry("t", "U8", "[1]", "[2,3]") + '}';
  auto const fault = header_fault(header, 3);
  CHECK(fault.what == "the header has two tensors of one name");
  CHECK(fault.where == where(tensor_t, "byte " + std::to_string(8 + header.rfind("\"t\""))));
  CHECK(fault.why == "the other one stands at byte 9");
}

TEST_CASE("hostile: two tensors with one name and the same offsets, which read alike") {
  std::string const one = entry("t", "U8", "[0]", "[0,0]");
  CHECK(header_fault('{' + one + ',' + one + '}').what == "the header has two tensors of one name");
}

TEST_CASE("hostile: two tensors with one name, spelt in two ways") {
  CHECK(header_fault('{' + entry("t", "U8", "[1]", "[0,1]") + ',' +
                         entry(R"(\u0074)", "U8", "[1]", "[1,2]") + '}',
                     2)
            .what == "the header has two tensors of one name");
}

// ---- metadata -----------------------------------------------------------------------------------

TEST_CASE("hostile: metadata that is not an object") {
  auto const fault = header_fault(R"({"__metadata__":"v"})");
  check_expected(fault, "an object", "a string");
  CHECK(fault.where == where("__metadata__", "byte 24"));
  check_expected(header_fault(R"({"__metadata__":null})"), "an object", "null");
}

TEST_CASE("hostile: metadata with a value that is not a text") {
  for (auto const& [value, found] : std::vector<std::pair<std::string, std::string>>{
           {"1", "a number"},
           {"-1", "a negative number"},
           {"1.5", "a number with a fraction or exponent, or beyond 64 bits"},
           {"true", "a truth value"},
           {"null", "null"},
           {"[]", "an array"},
           {"{}", "an object"}}) {
    auto const fault = header_fault(R"({"__metadata__":{"step":)" + value + "}}");
    check_expected(fault, "a string", found);
    CHECK(fault.where == where("__metadata__", "byte 32"));
  }
}

TEST_CASE("hostile: metadata with a key twice") {
  auto const fault = header_fault(R"({"__metadata__":{"b":"1","a":"2","b":"3"}})");
  CHECK(fault.what == "a key stands twice in the metadata");
  CHECK(fault.where == where("__metadata__", "byte 41"));
  CHECK(fault.why == "\"b\" stands at byte 25 as well");
}

TEST_CASE("hostile: metadata twice") {
  auto const fault = header_fault(R"({"__metadata__":{},"__metadata__":{}})");
  CHECK(fault.what == "__metadata__ stands twice in the header");
  CHECK(fault.where == where("", "byte 27"));
}

TEST_CASE("hostile: a tensor with the name of the metadata") {
  check_expected(header_fault('{' + entry("__metadata__", "U8", "[1]", "[0,1]") + '}', 1),
                 "a string", "an array");
}

// ---- types --------------------------------------------------------------------------------------

TEST_CASE("hostile: a type that the format does not have") {
  auto const fault = tensor_fault("\"F31\"", "[1]", "[0,4]", 4);
  CHECK(fault.what == "the element type is unknown");
  CHECK(fault.where == where(tensor_t, byte_of(R"({"t":{"dtype":"F31)", "\"F31")));
  CHECK(fault.why.starts_with("the header says \"F31\""));
  CHECK(fault.fix.find("newer") != std::string::npos);
}

TEST_CASE("hostile: a type in lower case, or with something after it") {
  for (char const* dtype : {"\"f32\"", "\"F32 \"", "\"F32\\u0000\"", "\"\""}) {
    CHECK(tensor_fault(dtype, "[1]", "[0,4]", 4).what == "the element type is unknown");
  }
}

TEST_CASE("hostile: a type that is not a text") {
  check_expected(tensor_fault("32", "[1]", "[0,4]", 4), "a string", "a number");
  check_expected(tensor_fault("null", "[1]", "[0,4]", 4), "a string", "null");
  check_expected(tensor_fault("{}", "[1]", "[0,4]", 4), "a string", "an object");
}

// ---- shapes -------------------------------------------------------------------------------------

TEST_CASE("hostile: a shape that is not an array") {
  check_expected(tensor_fault("\"U8\"", "4", "[0,4]", 4), "an array", "a number");
  check_expected(tensor_fault("\"U8\"", "\"4\"", "[0,4]", 4), "an array", "a string");
  check_expected(tensor_fault("\"U8\"", "{}", "[0,4]", 4), "an array", "an object");
}

TEST_CASE("hostile: a negative extent") {
  auto const fault = tensor_fault("\"U8\"", "[-1]", "[0,4]", 4);
  check_expected(fault, whole_number, "a negative number");
  CHECK(fault.where == where(tensor_t, byte_of(R"({"t":{"dtype":"U8","shape":[-1])", "-1")));
  check_expected(tensor_fault("\"U8\"", "[-2,-2]", "[0,4]", 4), whole_number, "a negative number");
}

TEST_CASE("hostile: an extent of minus zero") {
  check_expected(tensor_fault("\"U8\"", "[-0]", "[0,0]", 0), whole_number, "a negative number");
}

TEST_CASE("hostile: an extent with a fraction or an exponent") {
  for (char const* shape : {"[4.0]", "[4e0]", "[0.5]", "[1,4.0]"}) {
    check_expected(tensor_fault("\"U8\"", shape, "[0,4]", 4), whole_number,
                   "a number with a fraction or exponent, or beyond 64 bits");
  }
}

TEST_CASE("hostile: an extent of 2^64, which overflows 64 bits to 0") {
  check_expected(tensor_fault("\"U8\"", "[18446744073709551616]", "[0,0]", 0), whole_number,
                 "a number with a fraction or exponent, or beyond 64 bits");
}

TEST_CASE("hostile: an extent beyond the range of a double") {
  auto const fault = tensor_fault("\"U8\"", "[1e999]", "[0,0]", 0);
  CHECK(fault.what == "the header is not JSON");
  CHECK(fault.where.starts_with("test.safetensors, tensor \"t\", byte "));
}

TEST_CASE("hostile: an extent with leading zeros, or in hexadecimal") {
  CHECK(tensor_fault("\"U8\"", "[04]", "[0,4]", 4).what == "the header is not JSON");
  CHECK(tensor_fault("\"U8\"", "[0x4]", "[0,4]", 4).what == "the header is not JSON");
}

TEST_CASE("hostile: an extent that is a text, null, or an array") {
  check_expected(tensor_fault("\"U8\"", "[\"4\"]", "[0,4]", 4), whole_number, "a string");
  check_expected(tensor_fault("\"U8\"", "[null]", "[0,4]", 4), whole_number, "null");
  check_expected(tensor_fault("\"U8\"", "[[4]]", "[0,4]", 4), whole_number, "an array");
}

TEST_CASE("hostile: extents whose product is 2^64, which overflows 64 bits to 0") {
  auto const fault = tensor_fault("\"U8\"", "[4294967296,4294967296]", "[0,0]", 0);
  CHECK(fault.what == "the tensor is too large");
  CHECK(fault.where == where(tensor_t, "byte 9"));
}

TEST_CASE("hostile: extents whose product fits until it is multiplied by the type's width") {
  CHECK(tensor_fault("\"F64\"", "[2305843009213693952]", "[0,0]", 0).what ==
        "the tensor is too large");
  // 2^61 bytes are 2^64 bits.
  CHECK(tensor_fault("\"U8\"", "[2305843009213693952]", "[0,2305843009213693952]", 0).what ==
        "the tensor is too large");
}

TEST_CASE("hostile: an overflow after an extent of 0") {
  for (char const* shape : {"[0,4294967296,4294967296]", "[4294967296,4294967296,0]"}) {
    CHECK(tensor_fault("\"U8\"", shape, "[0,0]", 0).what == "the tensor is too large");
  }
}

TEST_CASE("hostile: a tensor with more bytes than its shape") {
  auto const fault = tensor_fault("\"F32\"", "[2]", "[0,12]", 12);
  CHECK(fault.what == "the tensor's shape does not fit its bytes");
  CHECK(fault.where == where(tensor_t, "byte 9"));
  CHECK(fault.why == "its shape of F32 takes 8 bytes, and its data_offsets [0,12] are 12");
}

TEST_CASE("hostile: a tensor with fewer bytes than its shape") {
  CHECK(tensor_fault("\"F32\"", "[2]", "[0,4]", 4).what ==
        "the tensor's shape does not fit its bytes");
}

TEST_CASE("hostile: a scalar without bytes, and an empty tensor with some") {
  CHECK(tensor_fault("\"U8\"", "[]", "[0,0]", 0).what ==
        "the tensor's shape does not fit its bytes");
  CHECK(tensor_fault("\"U8\"", "[0]", "[0,1]", 1).what ==
        "the tensor's shape does not fit its bytes");
}

TEST_CASE("hostile: a tensor of packed elements that ends within a byte") {
  auto const fault = tensor_fault("\"F4\"", "[3]", "[0,2]", 2);
  CHECK(fault.what == "the tensor ends within a byte");
  CHECK(fault.why == "12 bits of F4 are not a whole number of bytes");
  CHECK(tensor_fault("\"F6_E2M3\"", "[3]", "[0,3]", 3).what == "the tensor ends within a byte");
}

// ---- offsets ------------------------------------------------------------------------------------

TEST_CASE("hostile: offsets that are not an array") {
  check_expected(tensor_fault("\"U8\"", "[4]", "4", 4), "an array", "a number");
  check_expected(tensor_fault("\"U8\"", "[4]", "{}", 4), "an array", "an object");
}

TEST_CASE("hostile: no offset, and one") {
  check_expected(tensor_fault("\"U8\"", "[4]", "[]", 4), whole_number, "the array's end");
  check_expected(tensor_fault("\"U8\"", "[4]", "[0]", 4), whole_number, "the array's end");
}

TEST_CASE("hostile: three offsets") {
  check_expected(tensor_fault("\"U8\"", "[4]", "[0,4,4]", 4), "the end of two offsets", "a number");
}

TEST_CASE("hostile: negative offsets") {
  check_expected(tensor_fault("\"U8\"", "[4]", "[-4,0]", 4), whole_number, "a negative number");
}

TEST_CASE("hostile: offsets with fractions, and beyond 64 bits") {
  for (char const* offsets : {"[0.0,4]", "[0e0,4]", "[18446744073709551616,4]"}) {
    check_expected(tensor_fault("\"U8\"", "[4]", offsets, 4), whole_number,
                   "a number with a fraction or exponent, or beyond 64 bits");
  }
}

TEST_CASE("hostile: a tensor that ends before it begins") {
  auto const fault = tensor_fault("\"U8\"", "[4]", "[4,0]", 4);
  CHECK(fault.what == "the tensor ends before it begins");
  CHECK(fault.where == where(tensor_t, "byte 9"));
  CHECK(fault.why == "its data_offsets are [4,0]");
}

TEST_CASE("hostile: offsets whose difference wraps around to the right size") {
  CHECK(tensor_fault("\"U8\"", "[4]", "[18446744073709551614,2]", 2).what ==
        "the tensor ends before it begins");
}

TEST_CASE("hostile: offsets near 2^64, to which the header's size must not be added") {
  auto const fault =
      tensor_fault("\"U8\"", "[4]", "[18446744073709551611,18446744073709551615]", 4);
  CHECK(fault.what == "there is a hole before the tensor");
}

TEST_CASE("hostile: a tensor that claims exabytes of a file of nine") {
  auto const fault = tensor_fault("\"U8\"", "[1152921504606846976]", "[0,1152921504606846976]", 9);
  CHECK(fault.what == "the file is cut off");
}

TEST_CASE("hostile: a hole before the first tensor") {
  std::string const header = R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})";
  auto const fault = header_fault(header, 8);
  CHECK(fault.what == "there is a hole before the tensor");
  CHECK(fault.where == where(tensor_t, "byte " + std::to_string(8 + header.size())));
  CHECK(fault.why == "bytes 0 to 4 of the data belong to no tensor");
}

TEST_CASE("hostile: a hole between two tensors") {
  std::string const header =
      '{' + entry("s", "U8", "[2]", "[0,2]") + ',' + entry("t", "U8", "[2]", "[3,5]") + '}';
  auto const fault = header_fault(header, 5);
  CHECK(fault.what == "there is a hole before the tensor");
  CHECK(fault.where == where(tensor_t, "byte " + std::to_string(8 + header.size() + 2)));
}

TEST_CASE("hostile: a tensor without elements after a hole, or after the data") {
  CHECK(tensor_fault("\"U8\"", "[0]", "[1,1]", 1).what == "there is a hole before the tensor");
  CHECK(tensor_fault("\"U8\"", "[0]", "[1,1]", 0).what == "there is a hole before the tensor");
}

TEST_CASE("hostile: two tensors that overlap") {
  std::string const header =
      '{' + entry("s", "U8", "[4]", "[0,4]") + ',' + entry("t", "U8", "[3]", "[3,6]") + '}';
  auto const fault = header_fault(header, 6);
  CHECK(fault.what == "the tensor overlaps another one");
  CHECK(fault.where == where(tensor_t, "byte " + std::to_string(8 + header.size() + 3)));
  CHECK(fault.why == "its data_offsets are [3,6], and those of tensor \"s\" are [0,4]");
}

TEST_CASE("hostile: two tensors with the same offsets") {
  CHECK(header_fault(
            '{' + entry("s", "F32", "[1]", "[0,4]") + ',' + entry("t", "I32", "[1]", "[0,4]") + '}',
            4)
            .what == "the tensor overlaps another one");
}

TEST_CASE("hostile: a tensor without elements within another one") {
  CHECK(
      header_fault(
          '{' + entry("s", "U8", "[4]", "[0,4]") + ',' + entry("t", "U8", "[0]", "[2,2]") + '}', 4)
          .what == "the tensor overlaps another one");
}

// ---- the end ------------------------------------------------------------------------------------

TEST_CASE("hostile: a last tensor that ends one byte after the file") {
  std::string const file = small().substr(0, small().size() - 1);
  auto const fault = fault_of(file);
  CHECK(fault.what == "the file is cut off");
  CHECK(fault.where == where("tensor \"b\"", "byte " + std::to_string(file.size())));
  CHECK(fault.why == "the tensor ends at byte 11 of the data, and 10 bytes of data are there");
}

TEST_CASE("hostile: one byte after the last tensor") {
  auto const fault = fault_of(small() + "x");
  CHECK(fault.what == "bytes follow the last tensor");
  CHECK(fault.where == where("", "byte " + std::to_string(small().size())));
  CHECK(fault.why == "1 bytes belong to no tensor");
}

TEST_CASE("hostile: bytes after a header without tensors") {
  CHECK(header_fault("{}", 1).what == "bytes follow the last tensor");
}

TEST_CASE("hostile: another safetensors file after the first") {
  CHECK(fault_of(small() + small()).what == "bytes follow the last tensor");
}

// ---- all of them --------------------------------------------------------------------------------

TEST_CASE("every truncation of a file is an error that names the file") {
  std::string const file = small();
  for (std::size_t size = 0; size < file.size(); ++size) {
    auto const fault = fault_of(file.substr(0, size));
    CHECK(fault.what == (size == 0 ? "the file is empty" : "the file is cut off"));
    CHECK(fault.where.ends_with("byte " + std::to_string(size)));
  }
}

TEST_CASE("every flipped bit of length and header is an error, or another valid file") {
  std::string const file = small();
  std::size_t const header_end = file.size() - 11;
  int passed = 0;
  for (std::size_t bit = 0; bit < header_end * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try {
      Safetensors const tensors = Safetensors::parse(bytes_of(flipped), "flipped");
      ++passed;
      // A name may have changed; the offsets cannot have.
      REQUIRE(tensors.size() == 2);
      CHECK(text_of(tensors[0].bytes) + text_of(tensors[1].bytes) == flipped.substr(header_end));
      CHECK(tensors[0].bytes.size() == 8);
    } catch (frugal::FormatError const&) {
      // Any other error type, a crash or a hang fails the test.
    }
  }
  // The 7 flips of "a" that stay ASCII each give another name; one flip of "b" gives a quotation
  // mark. Nothing else can change undetected.
  CHECK(passed == 7 + 6);
}

TEST_CASE("every byte of a header replaced by every other is an error, or a valid file") {
  std::string const file = small();
  std::size_t const header_end = file.size() - 11;
  for (std::size_t at = 8; at < header_end; ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = file;
      changed[at] = static_cast<char>(value);
      try {
        Safetensors const tensors = Safetensors::parse(bytes_of(changed), "changed");
        CHECK(text_of(tensors[0].bytes) + text_of(tensors[1].bytes) == changed.substr(header_end));
      } catch (frugal::FormatError const&) {
      }
    }
  }
}

}  // namespace frugal_test::store_safetensors_hostile
