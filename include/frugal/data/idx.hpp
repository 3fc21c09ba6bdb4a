// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace frugal {

/// Reads a stream that is gzip-compressed or plain; which, its first two bytes say.
///
/// A gzip stream may have several members (RFC 1952, 2.2). Checksums and lengths are checked.
/// Needs zlib, and seekable input.
///
/// Errors  DataError for a damaged or cut off gzip stream, with the offset in the compressed
///         file; for bytes that follow the last member; for input that cannot be read.
class InflateReader {
 public:
  /// `name` is what errors call the input, as a rule the file's path.
  InflateReader(std::istream& input, std::string name);
  // What is held lies in the reader itself.
  InflateReader(InflateReader const&) = delete;
  InflateReader& operator=(InflateReader const&) = delete;

  /// Fills `out` as far as the input goes and returns how many bytes that was.
  std::size_t read(std::span<std::byte> out);

  bool compressed() const { return gzip_; }
  std::uint64_t offset() const { return offset_; }     ///< uncompressed bytes that were read
  std::uint64_t stored_size() const { return size_; }  ///< bytes of the input as it lies there
  std::string const& name() const { return name_; }

  /// Most bytes that the input can possibly give: deflate never does better than 1032 to 1
  /// (zlib's technical notes). Asked before memory is set aside for what a header claims.
  std::uint64_t most_bytes() const { return gzip_ ? size_ * 1032 + 1024 : size_; }

 private:
  struct EndInflate {
    void operator()(z_stream* stream) const {
      inflateEnd(stream);
      delete stream;
    }
  };

  static std::uint64_t measure(std::istream& input);

  /// Offset in the stored input of the next byte that was not read.
  std::uint64_t stored_offset() const { return fetched_ - held_.size(); }

  void refill();

  std::size_t copy_some(std::span<std::byte> out);

  void start_member();

  std::size_t inflate_some(std::span<std::byte> out);

  void end_member();

  [[noreturn]] void fail(std::string what, std::string why, std::string fix) const;

  static constexpr char const* again = "Fetch the file again.";

  std::istream& input_;
  std::string name_;
  std::uint64_t size_ = 0;
  std::uint64_t fetched_ = 0;
  std::uint64_t offset_ = 0;
  bool gzip_ = false;
  bool ended_ = false;
  std::array<unsigned char, 1U << 16> buffer_;
  std::span<unsigned char> held_;
  std::unique_ptr<z_stream, EndInflate> stream_;
};

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
#include <frugal/data/idx.ipp>
#endif
