// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hand-made safetensors files, byte by byte, independent of the code under test.

#include <doctest/doctest.h>

#include <frugal/checkpoint/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::store_files {

inline std::span<std::byte const> bytes_of(std::string const& text) {
  return std::as_bytes(std::span(text));
}

inline std::string text_of(std::span<std::byte const> bytes) {
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

inline std::string little_endian(std::uint64_t value) {
  std::string out;
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

/// A file with this header and these bytes of data.
inline std::string file_of(std::string const& header, std::string const& data = {}) {
  return little_endian(header.size()) + header + data;
}

/// The same with n bytes of data: 0, 1, 2, ...
inline std::string file_of(std::string const& header, std::size_t n) {
  std::string data;
  for (std::size_t i = 0; i < n; ++i) data.push_back(static_cast<char>(i));
  return file_of(header, data);
}

/// `"name":{"dtype":...}`, one entry of a header.
inline std::string entry(std::string const& name, std::string const& dtype,
                         std::string const& shape, std::string const& offsets) {
  return '"' + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         offsets + '}';
}

/// Two floats called a, then three bytes called b: 8 + 110 bytes of header, 11 of data.
inline std::string small() {
  return file_of(
      '{' + entry("a", "F32", "[2]", "[0,8]") + ',' + entry("b", "U8", "[3]", "[8,11]") + '}', 11);
}

inline frugal::Fault fault_of(std::string const& bytes) {
  try {
    (void)frugal::Safetensors::parse(bytes_of(bytes), "test.safetensors");
  } catch (frugal::FormatError const& error) {
    CHECK(!error.fault().fix.empty());
    return error.fault();
  }
  return {.what = "nothing was thrown", .where = "", .why = "", .fix = ""};
}

/// The byte offset of the text in a file with that header, as in errors.
inline std::string byte_of(std::string const& header, std::string const& text) {
  auto const at = header.find(text);
  REQUIRE(at != std::string::npos);
  return "byte " + std::to_string(8 + at);
}

using Shape = std::vector<std::uint64_t>;

inline Shape shape_of(frugal::TensorView const& tensor) {
  return {tensor.shape.begin(), tensor.shape.end()};
}

}  // namespace frugal_test::store_files
