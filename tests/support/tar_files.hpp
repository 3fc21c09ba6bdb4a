// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

// Tar files by hand, so that tests have those that no tool writes. The layout: POSIX.1-1988
// (ustar).
namespace frugal_test::support {

/// A header of 512 bytes; `claimed` is the size that it states.
inline std::string tar_header(std::string_view name, std::uint64_t claimed, char type = '0') {
  std::array<char, 512> block{};
  std::memcpy(block.data(), name.data(), std::min<std::size_t>(name.size(), 100));
  std::snprintf(block.data() + 100, 8, "%07o", 0644U);
  std::snprintf(block.data() + 108, 8, "%07o", 0U);
  std::snprintf(block.data() + 116, 8, "%07o", 0U);
  if (claimed < (std::uint64_t{1} << 33)) {
    std::snprintf(block.data() + 124, 12, "%011llo", static_cast<unsigned long long>(claimed));
  } else {  // GNU's form: binary, big-endian
    block[124] = static_cast<char>(0x80);
    for (std::size_t i = 0; i < 8; ++i) block[135 - i] = static_cast<char>(claimed >> (8 * i));
  }
  std::snprintf(block.data() + 136, 12, "%011o", 0U);
  block[156] = type;
  std::memcpy(block.data() + 257,
              "ustar\0"
              "00",
              8);
  std::memset(block.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (char const c : block) sum += static_cast<unsigned char>(c);
  std::snprintf(block.data() + 148, 8, "%06o", sum);
  return {block.data(), block.size()};
}

inline std::string padded(std::string_view content) {
  std::string out(content);
  out.resize((out.size() + 511) / 512 * 512, '\0');
  return out;
}

inline std::string tar_member(std::string_view name, std::string_view content, char type = '0') {
  return tar_header(name, content.size(), type) + padded(content);
}

/// The two blocks of zeros that end a tar file.
inline std::string tar_end() { return std::string(1024, '\0'); }

/// A name above 100 bytes in GNU's form, and in that of pax.
inline std::string gnu_long_member(std::string const& name, std::string_view content) {
  return tar_member("././@LongLink", name + '\0', 'L') + tar_member(name.substr(0, 100), content);
}
inline std::string pax_member(std::string const& record, std::string const& name,
                              std::string_view content) {
  std::string line = " " + record + "\n";
  std::size_t size = line.size() + 1;
  while (std::to_string(size).size() + line.size() != size) ++size;
  return tar_member("PaxHeader/x", std::to_string(size) + line, 'x') + tar_member(name, content);
}

inline std::filesystem::path write_bytes(std::filesystem::path const& path,
                                         std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace frugal_test::support
