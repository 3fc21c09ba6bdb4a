// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/error.hpp>

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace frugal {

/// The compression of the blocks of an Avro file. Debian's libavro has no zstandard, and no codec
/// that is asked for by block, so zlib and libzstd are called here.
enum class AvroCodec { null, deflate, zstandard };

namespace detail {

inline char const* codec_name(AvroCodec codec) {
  constexpr char const* names[] = {"null", "deflate", "zstandard"};
  return names[static_cast<int>(codec)];
}

inline std::optional<AvroCodec> codec_of(std::string_view name) {
  for (AvroCodec const codec : {AvroCodec::null, AvroCodec::deflate, AvroCodec::zstandard}) {
    if (name == codec_name(codec)) return codec;
  }
  return std::nullopt;
}

[[noreturn]] inline void codec_fault(std::string what, std::string const& where, std::string why) {
  throw DataError({.what = std::move(what),
                   .where = where,
                   .why = std::move(why),
                   .fix = "Fetch or write the file again."});
}

[[noreturn]] inline void too_large(std::string const& where, std::uint64_t limit) {
  throw DataError({.what = "a block is too large",
                   .where = where,
                   .why = "it grows beyond " + std::to_string(limit) + " bytes",
                   .fix = "Raise AvroSettings::most_block_bytes, if the file is trusted."});
}

/// What a block that grows to `limit` bytes may take in the file: what cannot be compressed becomes
/// a little longer.
inline std::uint64_t most_packed(std::uint64_t limit) { return limit + limit / 128 + 1024; }

/// A stream of raw deflate (RFC 1951).
inline std::string inflated(std::string_view packed, std::uint64_t limit,
                            std::string const& where) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    codec_fault("a block cannot be decompressed", where, "zlib has no memory");
  }
  std::unique_ptr<z_stream, int (*)(z_stream*)> const owner(&stream, inflateEnd);
  std::string out;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  int result = Z_OK;
  for (std::size_t step = std::max<std::size_t>(4 * packed.size(), 1024); result == Z_OK;) {
    std::size_t const had = out.size();
    if (had > limit) too_large(where, limit);
    out.resize(had + std::min<std::size_t>(step, std::size_t{1} << 24));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + had);
    stream.avail_out = static_cast<uInt>(out.size() - had);
    result = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (result == Z_BUF_ERROR) break;  // all was read, and it has no end
  }
  // Bytes may follow: fastavro leaves three of zlib's checksum.
  if (result != Z_STREAM_END) {
    codec_fault(
        "a block is damaged", where,
        stream.msg ? std::string("zlib says: ") + stream.msg : "its deflate stream is cut off");
  }
  if (out.size() > limit) too_large(where, limit);
  return out;
}

/// One or more frames of zstandard (RFC 8878).
inline std::string unzstd(std::string_view packed, std::uint64_t limit, std::string const& where) {
  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> const stream(ZSTD_createDStream(),
                                                                             ZSTD_freeDStream);
  std::string out;
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  std::size_t left = 1;
  for (std::size_t const step = ZSTD_DStreamOutSize(); in.pos < in.size || left != 0;) {
    std::size_t const had = out.size();
    if (had > limit) too_large(where, limit);
    out.resize(had + step);
    ZSTD_outBuffer room{out.data() + had, step, 0};
    std::size_t const before = in.pos;
    left = ZSTD_decompressStream(stream.get(), &room, &in);
    out.resize(had + room.pos);
    if (ZSTD_isError(left)) {
      codec_fault("a block is damaged", where,
                  std::string("zstd says: ") + ZSTD_getErrorName(left));
    }
    if (left != 0 && in.pos == before && room.pos < step) {
      codec_fault("a block is damaged", where, "its zstandard frame is cut off");
    }
  }
  if (out.size() > limit) too_large(where, limit);
  return out;
}

/// The content of a block. DataError for a damaged one, and one above `limit` bytes.
inline std::string decompressed(AvroCodec codec, std::string packed, std::uint64_t limit,
                                std::string const& where) {
  if (codec == AvroCodec::deflate) return inflated(packed, limit, where);
  if (codec == AvroCodec::zstandard) return unzstd(packed, limit, where);
  if (packed.size() > limit) too_large(where, limit);
  return packed;
}

/// Compresses a block.
inline std::string compressed(AvroCodec codec, std::string const& plain, std::string const& where) {
  if (codec == AvroCodec::zstandard) {
    std::string out(ZSTD_compressBound(plain.size()), '\0');
    std::size_t const size = ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), 3);
    if (ZSTD_isError(size))
      codec_fault("a block cannot be compressed", where, ZSTD_getErrorName(size));
    out.resize(size);
    return out;
  }
  if (codec == AvroCodec::null) return plain;
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    codec_fault("a block cannot be compressed", where, "zlib has no memory");
  }
  std::unique_ptr<z_stream, int (*)(z_stream*)> const owner(&stream, deflateEnd);
  std::string out(deflateBound(&stream, static_cast<uLong>(plain.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) {
    codec_fault("a block cannot be compressed", where, "zlib stopped early");
  }
  out.resize(stream.total_out);
  return out;
}

}  // namespace detail

}  // namespace frugal
