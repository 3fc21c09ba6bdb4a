// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/crc.hpp>

namespace frugal::detail {

inline std::uint32_t crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

/// As TFRecord files store it: a checksum of data that holds its own checksum would tell little.
inline std::uint32_t masked_crc32c(std::string_view bytes) {
  std::uint32_t const crc = crc32c(bytes);
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

template <class Number>
void append_little_endian(std::string& out, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) {
    out += static_cast<char>(static_cast<unsigned char>(number >> (8 * i)));
  }
}

/// One record: its length, a checksum of that, the bytes, a checksum of these.
inline std::string tfrecord(std::string_view bytes) {
  std::string out;
  append_little_endian(out, static_cast<std::uint64_t>(bytes.size()));
  append_little_endian(out, masked_crc32c(out));
  out += bytes;
  append_little_endian(out, masked_crc32c(bytes));
  return out;
}

}  // namespace frugal::detail
