// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/idx/inflate.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <new>
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
