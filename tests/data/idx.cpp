// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/idx.hpp>

#include <doctest/doctest.h>

#include <zlib.h>

#include <unistd.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace frugal_test::data_idx {

using frugal::DataError;
using frugal::IdxArray;
using frugal::IdxType;
using frugal::InflateReader;

// It points into itself: a copy that outlives it would dangle.
static_assert(!std::is_move_constructible_v<InflateReader>);
static_assert(!std::is_copy_constructible_v<InflateReader>);
static_assert(!std::is_move_assignable_v<InflateReader>);

TEST_CASE("plain input reads unchanged, in pieces of any size") {
  std::istringstream input("plain text");
  InflateReader reader(input, "x");
  std::string out(10, ' ');
  auto const bytes = std::as_writable_bytes(std::span(out));
  CHECK(reader.read(bytes.first(3)) == 3);
  CHECK(reader.read(bytes.subspan(3)) == 7);
  CHECK(out == "plain text");
  CHECK(reader.read(bytes) == 0);
  CHECK(reader.offset() == 10);
}

std::string big_endian(std::uint64_t value, int width) {
  std::string out;
  for (int i = width - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

std::string header(IdxType type, std::vector<std::uint32_t> const& shape) {
  std::string out{'\0', '\0', static_cast<char>(type), static_cast<char>(shape.size())};
  for (std::uint32_t const extent : shape) out += big_endian(extent, 4);
  return out;
}

/// Three 2 x 2 images of bytes 0 to 11: 16 bytes of header, 12 of elements.
std::string small() {
  std::string out = header(IdxType::uint8, {3, 2, 2});
  for (char i = 0; i < 12; ++i) out.push_back(i);
  return out;
}

std::string gzip(std::string const& plain) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, static_cast<uLong>(plain.size())) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

IdxArray parse(std::string const& bytes, frugal::IdxLimits limits = {}) {
  std::istringstream input(bytes);
  return frugal::read_idx(input, "test.idx", limits);
}

frugal::Fault fault_of(std::string const& bytes, frugal::IdxLimits limits = {}) {
  try {
    parse(bytes, limits);
  } catch (DataError const& error) {
    return error.fault();
  }
  return {.what = "nothing was thrown", .where = "", .why = "", .fix = ""};
}

template <class T>
std::vector<T> elements(IdxArray const& array) {
  std::vector<T> out(array.elements());
  std::memcpy(out.data(), array.data.get(), array.size);
  return out;
}

using Shape = std::vector<std::uint64_t>;

TEST_CASE("an IDX file of bytes is read with its shape, plain and compressed alike") {
  for (std::string const& bytes : {small(), gzip(small())}) {
    IdxArray const array = parse(bytes);
    CHECK(array.type == IdxType::uint8);
    CHECK(array.shape == Shape{3, 2, 2});
    CHECK(elements<std::uint8_t>(array) ==
          std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  }
}

TEST_CASE("every element type of IDX comes out in this machine's byte order") {
  auto const one = [](IdxType type, std::uint64_t bits, int width) {
    return parse(header(type, {2}) + big_endian(bits, width) + big_endian(1, width));
  };
  CHECK(elements<std::uint8_t>(one(IdxType::uint8, 0xfe, 1)) == std::vector<std::uint8_t>{254, 1});
  CHECK(elements<std::int8_t>(one(IdxType::int8, 0xfe, 1)) == std::vector<std::int8_t>{-2, 1});
  CHECK(elements<std::int16_t>(one(IdxType::int16, 0xfffe, 2)) == std::vector<std::int16_t>{-2, 1});
  CHECK(elements<std::int32_t>(one(IdxType::int32, 0x01020304, 4)) ==
        std::vector<std::int32_t>{0x01020304, 1});
  CHECK(elements<float>(one(IdxType::float32, std::bit_cast<std::uint32_t>(-1.5F), 4))[0] == -1.5F);
  CHECK(elements<double>(one(IdxType::float64, std::bit_cast<std::uint64_t>(0.1), 8))[0] == 0.1);
}

TEST_CASE("an IDX array with a dimension of 0 has no elements and is no error") {
  IdxArray const array = parse(header(IdxType::float64, {0, 5}));
  CHECK(array.shape == Shape{0, 5});
  CHECK(array.elements() == 0);
}

TEST_CASE("several gzip members read as one file") {
  std::string const bytes = small();
  CHECK(parse(gzip(bytes.substr(0, 9)) + gzip(bytes.substr(9))).shape == Shape{3, 2, 2});
}

TEST_CASE("an empty file is reported as empty") {
  auto const fault = fault_of("");
  CHECK(fault.what == "the file is empty");
  CHECK(fault.where == "test.idx, byte 0");
  CHECK(fault_of(gzip("")).what == "the file is empty");
}

TEST_CASE("a file that is not IDX is refused with the bytes that were found") {
  CHECK(fault_of("PK\x03\x04").why == "expected 00 00, found 50 4b");
  std::string unknown = small();
  unknown[2] = 0x0a;
  CHECK(fault_of(unknown).where == "test.idx, byte 2");
  CHECK(fault_of(unknown).why == "expected 08, 09, 0b, 0c, 0d or 0e, found 0a");
  std::string flat = small();
  flat[3] = 0;
  CHECK(fault_of(flat).why == "expected 1 to 8, found 0");
}

TEST_CASE("sizes that overflow or are absurd are refused before memory is allocated") {
  std::uint32_t const most = 0xffffffff;
  CHECK(fault_of(header(IdxType::float64, {most, most, most, most})).what ==
        "the array is absurdly large");
  // 2^64 bytes in total, which overflow 64 bits to 0.
  CHECK(fault_of(header(IdxType::uint8, {1U << 31, 1U << 31, 4})).what ==
        "the array is absurdly large");
  // The same, with the product below the limit until the last dimension.
  CHECK(fault_of(header(IdxType::uint8, {1U << 31, 4, 1U << 31})).what ==
        "the array is absurdly large");
  // A dimension of 0 at the end does not excuse the ones before it.
  CHECK(fault_of(header(IdxType::float64, {most, most, 0})).what == "the array is absurdly large");
  CHECK(fault_of(small(), {.bytes = 11}).what == "the array is absurdly large");
  CHECK(fault_of(small(), {.bytes = 12}).what == "nothing was thrown");
}

TEST_CASE("a header that claims more than its file can hold is refused at once") {
  for (auto const& bytes :
       {header(IdxType::uint8, {4'000'000'000U}), gzip(header(IdxType::uint8, {4'000'000'000U}))}) {
    auto const fault = fault_of(bytes);
    CHECK(fault.what == "the file is cut off");
    CHECK(fault.why.starts_with("the header promises 4000000000 bytes of elements"));
  }
}

TEST_CASE("bytes after the last element are refused, plain and inside the compression") {
  for (auto const& bytes : {small() + "x", gzip(small() + "x")}) {
    auto const fault = fault_of(bytes);
    CHECK(fault.what == "bytes follow the last element");
    CHECK(fault.where.starts_with("test.idx, byte 28"));
  }
}

TEST_CASE("bytes after the gzip stream are refused with their offset in the stored file") {
  std::string const stored = gzip(small());
  auto const fault = fault_of(stored + "junk");
  CHECK(fault.what == "bytes follow the end of the gzip stream");
  CHECK(fault.where == "test.idx, byte " + std::to_string(stored.size()));
}

TEST_CASE("a wrong gzip checksum and a wrong gzip length are refused") {
  std::string const stored = gzip(small());
  for (std::size_t from_end = 1; from_end <= 8; ++from_end) {
    std::string damaged = stored;
    damaged[stored.size() - from_end] ^= 1;
    auto const fault = fault_of(damaged);
    CHECK(fault.what == "the gzip stream is damaged");
    CHECK(fault.why ==
          (from_end > 4 ? "zlib says: incorrect data check" : "zlib says: incorrect length check"));
  }
}

TEST_CASE("every truncation of a plain file is an error that names the offset") {
  std::string const bytes = small();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    auto const fault = fault_of(bytes.substr(0, size));
    CHECK(fault.where == "test.idx, byte " + std::to_string(size));
  }
}

TEST_CASE("every truncation of a compressed file is an error") {
  std::string const stored = gzip(small());
  for (std::size_t size = 0; size < stored.size(); ++size) {
    CHECK(fault_of(stored.substr(0, size)).what != "nothing was thrown");
  }
}

TEST_CASE("every flipped bit of a header is an error or gives the shape it then declares") {
  std::string const bytes = small();
  int detected = 0;
  for (std::size_t bit = 0; bit < 16 * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try {
      IdxArray const array = parse(flipped);
      for (std::size_t i = 0; i < array.shape.size(); ++i) {
        CHECK(big_endian(array.shape[i], 4) == flipped.substr(4 + 4 * i, 4));
      }
      std::uint64_t product = IdxArray::width(array.type);
      for (std::uint64_t const extent : array.shape) product *= extent;
      CHECK(product == array.size);
    } catch (DataError const&) {
      ++detected;
    }
  }
  // The only flip that keeps the length changes bytes to signed bytes.
  CHECK(detected == 16 * 8 - 1);
}

TEST_CASE("every flipped bit of a compressed file is an error or leaves the elements unchanged") {
  std::string const stored = gzip(small());
  std::size_t detected = 0;
  for (std::size_t bit = 0; bit < stored.size() * 8; ++bit) {
    std::string flipped = stored;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try {
      IdxArray const array = parse(flipped);
      CHECK(elements<std::uint8_t>(array) == elements<std::uint8_t>(parse(small())));
    } catch (DataError const&) {
      ++detected;
    }
  }
  // Undetectable flips: the header's time stamp, flags and operating system, and the padding bits
  // of the deflate stream's last byte.
  CHECK(detected >= (stored.size() - 11) * 8);
}

TEST_CASE("a file larger than the read buffer is read in both ways") {
  std::string bytes = header(IdxType::uint8, {300'000});
  std::uint32_t state = 1;
  for (int i = 0; i < 300'000; ++i) {
    state = state * 1664525 + 1013904223;
    bytes.push_back(static_cast<char>(state >> 24));
  }
  for (auto const& stored : {bytes, gzip(bytes)}) {
    IdxArray const array = parse(stored);
    CHECK(std::memcmp(array.data.get(), bytes.data() + 8, array.size) == 0);
  }
}

TEST_CASE("a missing file, and a folder, are refused by name") {
  CHECK_THROWS_AS(frugal::read_idx(std::filesystem::path("/no/such/file.idx")), DataError);
  auto const folder = std::filesystem::temp_directory_path();
  CHECK_THROWS_AS(frugal::read_idx(folder), DataError);
  std::string const loop = (folder / "frugal-idx-loop-").string() + std::to_string(::getpid());
  std::filesystem::create_symlink(loop, loop);
  CHECK_THROWS_AS(frugal::read_idx(std::filesystem::path(loop)), DataError);
  std::filesystem::remove(loop);
}

}  // namespace frugal_test::data_idx
