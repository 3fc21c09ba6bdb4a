// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/npy.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::data_shards_npy {

using frugal::DataError;
using frugal::Dtype;
using Shape = std::vector<std::uint64_t>;

/// A file of version 1, with this text as its header.
std::string file(std::string const& header, std::string const& elements) {
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 255U);
  out += static_cast<char>(header.size() >> 8U);
  return out + header + elements;
}

frugal::NpyArray read(std::string const& bytes) {
  return frugal::read_npy(std::as_bytes(std::span(bytes)), "x.npy");
}

std::string why(std::string const& bytes) {
  try {
    (void)read(bytes);
  } catch (DataError const& error) {
    return error.fault().why;
  }
  return "nothing was thrown";
}

std::string header(std::string const& descr, std::string const& shape,
                   std::string const& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

TEST_CASE("what np.save writes is read") {
  // np.save(f, np.arange(3, dtype=np.int16)) of numpy 2.4, byte for byte.
  std::string bytes("\x93NUMPY\x01\x00v\x00", 10);
  bytes += "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }";
  bytes.resize(127, ' ');
  bytes += std::string("\n\0\0\1\0\2\0", 7);
  auto const array = read(bytes);
  CHECK(array.dtype == Dtype::i16);
  CHECK(array.shape == Shape{3});
  CHECK(array.bytes.size() == 6);
  CHECK(std::to_integer<int>(array.bytes[4]) == 2);
  CHECK(frugal::npy_header(Dtype::i16, Shape{3}) == bytes.substr(0, 128));
}

TEST_CASE("shapes of every number of dimensions are read, and written as they are read") {
  for (Shape const& shape : {Shape{}, Shape{4}, Shape{2, 3}, Shape{1, 0, 7}, Shape{2, 2, 2, 2}}) {
    std::uint64_t elements = 1;
    for (std::uint64_t const extent : shape) elements *= extent;
    std::string const bytes =
        frugal::npy_header(Dtype::f64, shape) + std::string(8 * elements, 'x');
    CHECK(bytes.size() % 64 == 8 * elements % 64);
    auto const array = read(bytes);
    CHECK(array.dtype == Dtype::f64);
    CHECK(array.shape == shape);
    CHECK(array.bytes.size() == 8 * elements);
  }
}

TEST_CASE("every type that is read is written under the same name") {
  for (auto const& [name, dtype] : frugal::detail::npy_types) {
    CAPTURE(name);
    std::uint64_t const width = frugal::dtype_bits(dtype) / 8;
    CHECK(read(file(header(std::string(name), "()"), std::string(width, 'x'))).dtype == dtype);
    CHECK(read(frugal::npy_header(dtype, {}) + std::string(width, 'x')).dtype == dtype);
  }
}

TEST_CASE("headers of versions 2 and 3 have four bytes for their length") {
  std::string const text = header("|u1", "(2,)");
  std::string bytes("\x93NUMPY\x02\x00", 8);
  bytes += static_cast<char>(text.size());
  bytes += std::string(3, '\0') + text + "ab";
  CHECK(read(bytes).shape == Shape{2});
  bytes[6] = 3;
  CHECK(read(bytes).shape == Shape{2});
  bytes[6] = 4;
  CHECK(why(bytes) == "its version is 4");
}

TEST_CASE("keys come in any order, with either quote and any blanks") {
  CHECK(read(file("{\"shape\":(2,),\"descr\":\"|u1\",\"fortran_order\":False}", "ab")).shape ==
        Shape{2});
  CHECK(
      read(file("  { 'shape' : ( 2 , 1 ) , 'descr' : '|u1' , 'fortran_order' : False , } \n", "ab"))
          .shape == Shape{2, 1});
}

TEST_CASE("what is not read is refused with the reason") {
  CHECK(why(file(header("<f4", "(1,)", "True"), "abcd").substr(0)) ==
        "its elements are in Fortran's order; save np.ascontiguousarray(x)");
  CHECK(why(file(header(">f4", "(1,)"), "abcd")) == "the type '>f4' is not read");
  CHECK(why(file(header("|O", "(1,)"), "abcd")) == "the type '|O' is not read");
  CHECK(why(file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd")) ==
        "its elements are records");
  CHECK(why(file(header("<f4", "(1,)"), "abcde")) ==
        "its shape asks for 4 bytes of elements, and there are 5");
  CHECK(why(file(header("<f4", "(4294967296, 4294967296, 4)"), ""))
            .starts_with("its shape asks for too many"));
  CHECK(why(file(header("<f4", "(0, 18446744073709551615, 2)"), ""))
            .starts_with("its shape asks for too many"));
  CHECK(why(file(header("<f4", "(18446744073709551616,)"), "")) == "expected a number below 2^64");
  CHECK(why(file(header("<f4", "(-1,)"), "")) == "expected a number below 2^64");
  CHECK(why(file("{'descr': '<f4', 'fortran_order': False, }", "abcd")) ==
        "one of descr, fortran_order and shape is missing");
  CHECK(why(file("{'descr': '<f4', 'descr': '<f4'}", "")) ==
        "the key 'descr' is unknown, or there twice");
  CHECK(why(file(header("<f4", "(1 2)"), "")) == "a comma is missing in the shape");
  CHECK(why(file(header("<f4", "(1,)") + "x", "abcd")) == "bytes follow the header's dictionary");
  CHECK(why("PK\x03\x04 and more bytes").starts_with("it does not begin with 93"));
}

TEST_CASE("every truncation is refused, and says where") {
  std::string const whole = frugal::npy_header(Dtype::f32, Shape{2}) + "abcdefgh";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_THROWS_AS(read(whole.substr(0, size)), DataError);
  }
  try {
    (void)read(file("{'descr': 7}", ""));
  } catch (DataError const& error) {
    CHECK(error.fault().where == "x.npy, byte 20");
  }
}

}  // namespace frugal_test::data_shards_npy
