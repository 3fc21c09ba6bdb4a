// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/idx.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <system_error>
#include <utility>

namespace frugal {

FRUGAL_INLINE InflateReader::InflateReader(std::istream& input, std::string name)
    : input_(input), name_(std::move(name)), size_(measure(input)) {
  refill();
  gzip_ = held_.size() >= 2 && held_[0] == 0x1f && held_[1] == 0x8b;
  if (gzip_) start_member();
}

FRUGAL_INLINE std::size_t InflateReader::read(std::span<std::byte> out) {
  std::size_t const wanted = out.size();
  while (!out.empty()) {
    std::size_t const got = gzip_ ? inflate_some(out) : copy_some(out);
    if (got == 0 && (ended_ || (!gzip_ && held_.empty()))) break;
    out = out.subspan(got);
  }
  std::size_t const done = wanted - out.size();
  offset_ += done;
  return done;
}

FRUGAL_INLINE std::uint64_t InflateReader::measure(std::istream& input) {
  auto const begin = input.tellg();
  input.seekg(0, std::ios::end);
  auto const end = input.tellg();
  input.seekg(begin);
  return end < begin ? 0 : static_cast<std::uint64_t>(end - begin);
}

FRUGAL_INLINE void InflateReader::refill() {
  if (!held_.empty()) return;
  input_.read(reinterpret_cast<char*>(buffer_.data()),
              static_cast<std::streamsize>(buffer_.size()));
  if (input_.bad()) fail("the file cannot be read", "the system reports a read error", "");
  held_ = std::span(buffer_).first(static_cast<std::size_t>(input_.gcount()));
  fetched_ += held_.size();
}

FRUGAL_INLINE std::size_t InflateReader::copy_some(std::span<std::byte> out) {
  refill();
  std::size_t const count = std::min(out.size(), held_.size());
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(held_[i]);
  held_ = held_.subspan(count);
  return count;
}

FRUGAL_INLINE void InflateReader::start_member() {
  auto stream = std::make_unique<z_stream>();
  // 15: the largest window; + 16: a gzip header, and zlib checks the trailer.
  if (inflateInit2(stream.get(), 15 + 16) != Z_OK) throw std::bad_alloc();
  stream_.reset(stream.release());
}

FRUGAL_INLINE std::size_t InflateReader::inflate_some(std::span<std::byte> out) {
  if (ended_) return 0;
  refill();
  std::size_t const limit = std::min<std::size_t>(out.size(), std::size_t{1} << 30);
  stream_->next_in = held_.data();
  stream_->avail_in = static_cast<uInt>(held_.size());
  stream_->next_out = reinterpret_cast<Bytef*>(out.data());
  stream_->avail_out = static_cast<uInt>(limit);
  bool const starved = held_.empty();
  int const status = inflate(stream_.get(), Z_NO_FLUSH);
  held_ = held_.last(stream_->avail_in);
  std::size_t const made = limit - stream_->avail_out;
  if (status == Z_STREAM_END) {
    end_member();
  } else if (starved && made == 0) {
    fail("the gzip stream is cut off", "the file ends inside the compressed data", again);
  } else if (status == Z_MEM_ERROR) {
    throw std::bad_alloc();
  } else if (status != Z_OK && status != Z_BUF_ERROR) {
    fail("the gzip stream is damaged",
         std::string("zlib says: ") + (stream_->msg ? stream_->msg : zError(status)), again);
  }
  return made;
}

FRUGAL_INLINE void InflateReader::end_member() {
  refill();
  if (held_.empty()) {
    ended_ = true;
    return;
  }
  if (held_[0] != 0x1f) {
    fail("bytes follow the end of the gzip stream",
         "expected the end of the file or another gzip member", again);
  }
  start_member();
}

FRUGAL_INLINE void InflateReader::fail(std::string what, std::string why, std::string fix) const {
  throw DataError({.what = std::move(what),
                   .where = name_ + ", byte " + std::to_string(stored_offset()),
                   .why = std::move(why),
                   .fix = std::move(fix)});
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE IdxArray IdxParser::parse() {
  IdxArray array;
  read_magic(array);
  read_shape(array);
  read_elements(array);
  return array;
}

FRUGAL_INLINE void IdxParser::read_magic(IdxArray& array) {
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

FRUGAL_INLINE void IdxParser::read_shape(IdxArray& array) {
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

FRUGAL_INLINE void IdxParser::read_elements(IdxArray& array) {
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
         "expected the end of the file after " + std::to_string(array.size) + " bytes of elements");
  }
  to_native(elements, IdxArray::width(array.type));
}

FRUGAL_INLINE void IdxParser::to_native(std::span<std::byte> bytes, std::uint64_t width) {
  if constexpr (std::endian::native == std::endian::big) return;
  if (width == 1) return;
  for (; !bytes.empty(); bytes = bytes.subspan(width)) {
    std::reverse(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(width));
  }
}

FRUGAL_INLINE std::string IdxParser::hex(std::byte byte) {
  constexpr char digits[] = "0123456789abcdef";
  auto const value = std::to_integer<unsigned>(byte);
  return {digits[value >> 4], digits[value & 15U]};
}

FRUGAL_INLINE void IdxParser::fail(std::uint64_t offset, std::string what, std::string why) const {
  throw DataError({.what = std::move(what),
                   .where = input_.name() + ", byte " + std::to_string(offset) +
                            (input_.compressed() ? " of the uncompressed data" : ""),
                   .why = std::move(why),
                   .fix = "Fetch the file again, or give one in IDX format."});
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE IdxArray read_idx(std::istream& input, std::string name, IdxLimits const& limits) {
  InflateReader reader(input, std::move(name));
  return detail::IdxParser(reader, limits).parse();
}

FRUGAL_INLINE IdxArray read_idx(std::filesystem::path const& path, IdxLimits const& limits) {
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
