// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <span>
#include <string>

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

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/idx/inflate.ipp>
#endif
