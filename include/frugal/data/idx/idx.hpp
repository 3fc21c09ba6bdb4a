// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/idx/inflate.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace frugal {

/// Element types of the IDX format, with the codes that files use.
enum class IdxType : std::uint8_t {
  uint8 = 0x08,
  int8 = 0x09,
  int16 = 0x0b,
  int32 = 0x0c,
  float32 = 0x0d,
  float64 = 0x0e,
};

/// What a file may claim before it is called absurd.
struct IdxLimits {
  std::uint64_t bytes = std::uint64_t{8} << 30;  ///< of elements, uncompressed
  int dimensions = 8;
};

/// An array as an IDX file holds it, in this machine's byte order, row-major.
struct IdxArray {
  IdxType type = IdxType::uint8;
  std::vector<std::uint64_t> shape;
  std::uint64_t size = 0;             ///< in bytes
  std::unique_ptr<std::byte[]> data;  ///< size bytes, aligned for every element type

  std::uint64_t elements() const { return size / width(type); }

  /// Bytes of one element; 0 for a code that the format does not have.
  static constexpr std::uint64_t width(IdxType type) {
    switch (type) {
      case IdxType::uint8:
      case IdxType::int8:
        return 1;
      case IdxType::int16:
        return 2;
      case IdxType::int32:
      case IdxType::float32:
        return 4;
      case IdxType::float64:
        return 8;
    }
    return 0;
  }
};

namespace detail {

class IdxParser {
 public:
  IdxParser(InflateReader& input, IdxLimits const& limits) : input_(input), limits_(limits) {}

  FRUGAL_INLINE IdxArray parse() {
    IdxArray array;
    read_magic(array);
    read_shape(array);
    read_elements(array);
    return array;
  }

 private:
  FRUGAL_INLINE void read_magic(IdxArray& array) {
    std::array<std::byte, 4> magic{};
    if (std::size_t const got = input_.read(magic); got < magic.size()) {
      fail(got, got == 0 ? "the file is empty" : "the file is cut off",
           "expected the 4 bytes of an IDX header, found " + std::to_string(got));
    }
    if (magic[0] != std::byte{0} || magic[1] != std::byte{0}) {
      fail(0, "this is not an IDX file",
           "expected 00 00, found " + hex(magic[0]) + " " + hex(magic[1]));
    }
    array.type = static_cast<IdxType>(magic[2]);
    if (IdxArray::width(array.type) == 0) {
      fail(2, "the element type is unknown",
           "expected 08, 09, 0b, 0c, 0d or 0e, found " + hex(magic[2]));
    }
    int const dimensions = std::to_integer<int>(magic[3]);
    if (dimensions < 1 || dimensions > limits_.dimensions) {
      fail(3, "the number of dimensions is absurd",
           "expected 1 to " + std::to_string(limits_.dimensions) + ", found " +
               std::to_string(dimensions));
    }
    array.shape.resize(static_cast<std::size_t>(dimensions));
  }

  FRUGAL_INLINE void read_shape(IdxArray& array) {
    array.size = IdxArray::width(array.type);
    for (std::uint64_t& extent : array.shape) {
      std::uint64_t const at = input_.offset();
      std::array<std::byte, 4> bytes{};
      if (std::size_t const got = input_.read(bytes); got < bytes.size()) {
        fail(at + got, "the file is cut off",
             "expected " + std::to_string(array.shape.size()) + " dimensions of 4 bytes each");
      }
      for (std::byte const byte : bytes) extent = extent << 8 | std::to_integer<unsigned>(byte);
      // A later 0 must not excuse an overflow before it: each product is checked.
      if (extent != 0 && array.size > limits_.bytes / extent) {
        fail(at, "the array is absurdly large",
             "expected at most " + std::to_string(limits_.bytes) + " bytes, found a dimension of " +
                 std::to_string(extent) + " on top of " + std::to_string(array.size) + " bytes");
      }
      array.size *= extent;
    }
  }

  FRUGAL_INLINE void read_elements(IdxArray& array) {
    std::uint64_t const begin = input_.offset();
    // Asked before memory is set aside: a header of twenty bytes may claim gigabytes.
    if (begin + array.size > input_.most_bytes()) {
      fail(input_.compressed() ? begin : input_.stored_size(), "the file is cut off",
           "the header promises " + std::to_string(array.size) + " bytes of elements, and " +
               std::to_string(input_.stored_size()) + " bytes of file cannot hold them");
    }
    array.data.reset(new std::byte[array.size]);
    std::span const elements(array.data.get(), array.size);
    if (std::size_t const got = input_.read(elements); got < array.size) {
      fail(begin + got, "the file is cut off",
           "expected " + std::to_string(array.size) + " bytes of elements, found " +
               std::to_string(got));
    }
    std::array<std::byte, 1> more{};
    if (input_.read(more) != 0) {
      fail(begin + array.size, "bytes follow the last element",
           "expected the end of the file after " + std::to_string(array.size) +
               " bytes of elements");
    }
    to_native(elements, IdxArray::width(array.type));
  }

  /// IDX is big-endian.
  FRUGAL_INLINE static void to_native(std::span<std::byte> bytes, std::uint64_t width) {
    if constexpr (std::endian::native == std::endian::big) return;
    if (width == 1) return;
    for (; !bytes.empty(); bytes = bytes.subspan(width)) {
      std::reverse(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(width));
    }
  }

  FRUGAL_INLINE static std::string hex(std::byte byte) {
    constexpr char digits[] = "0123456789abcdef";
    auto const value = std::to_integer<unsigned>(byte);
    return {digits[value >> 4], digits[value & 15U]};
  }

  [[noreturn]] FRUGAL_INLINE void fail(std::uint64_t offset, std::string what,
                                       std::string why) const {
    throw DataError({.what = std::move(what),
                     .where = input_.name() + ", byte " + std::to_string(offset) +
                              (input_.compressed() ? " of the uncompressed data" : ""),
                     .why = std::move(why),
                     .fix = "Fetch the file again, or give one in IDX format."});
  }

  InflateReader& input_;
  IdxLimits limits_;
};

}  // namespace detail

/// Reads an IDX array, plain or gzip-compressed, from a seekable stream that errors call `name`.
///
/// Format  LeCun, Cortes, Burges, "The MNIST database", section "File formats": 00 00, element
///         type, number of dimensions, the dimensions as big-endian uint32, the elements.
/// Errors  DataError with name and byte offset, what was expected and what was found: an empty,
///         cut off or damaged file, an unknown type, an absurd size, bytes after the end.
FRUGAL_INLINE IdxArray read_idx(std::istream& input, std::string name,
                                IdxLimits const& limits = {}) {
  InflateReader reader(input, std::move(name));
  return detail::IdxParser(reader, limits).parse();
}

/// Reads a file.
FRUGAL_INLINE IdxArray read_idx(std::filesystem::path const& path, IdxLimits const& limits = {}) {
  std::ifstream input(path, std::ios::binary);
  int const reason = errno;
  std::error_code ignored;
  bool const folder = std::filesystem::is_directory(path, ignored);
  if (!input || folder) {
    throw DataError({.what = "the file cannot be opened",
                     .where = path.string(),
                     .why = folder ? "it is a folder" : std::strerror(reason),
                     .fix = "Give the path of a readable IDX file."});
  }
  return read_idx(input, path.string(), limits);
}

}  // namespace frugal
