// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/idx/inflate.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
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

  IdxArray parse();

 private:
  void read_magic(IdxArray& array);

  void read_shape(IdxArray& array);

  void read_elements(IdxArray& array);

  /// IDX is big-endian.
  static void to_native(std::span<std::byte> bytes, std::uint64_t width);

  static std::string hex(std::byte byte);

  [[noreturn]] void fail(std::uint64_t offset, std::string what, std::string why) const;

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
IdxArray read_idx(std::istream& input, std::string name, IdxLimits const& limits = {});

/// Reads a file.
IdxArray read_idx(std::filesystem::path const& path, IdxLimits const& limits = {});

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/idx/idx.ipp>
#endif
