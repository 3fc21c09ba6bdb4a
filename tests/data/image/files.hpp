// SPDX-License-Identifier: Apache-2.0
// The files of tests/reference/images.json, and what tests do to them.
#pragma once

#include <frugal/data/image/pixels.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace frugal_test::image {

using Json = nlohmann::json;

inline Json const& cases() {
  static Json const file =
      Json::parse(std::ifstream(std::string(FRUGAL_TEST_DIR) + "/reference/images.json"));
  return file.at("cases");
}

inline Json const& case_of(std::string const& name) {
  for (Json const& each : cases()) {
    if (each.at("name") == name) return each;
  }
  throw std::runtime_error("images.json has no case " + name);
}

inline std::vector<std::byte> bytes_of(Json const& each) {
  auto const hex = each.at("file").get<std::string>();
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

inline std::vector<std::byte> file_of(std::string const& name) { return bytes_of(case_of(name)); }

inline frugal::DecodeOptions options_of(Json const& each) {
  auto const channels = each.at("channels").get<std::string>();
  return {.channels = channels == "grey"   ? frugal::Channels::grey
                      : channels == "rgb"  ? frugal::Channels::rgb
                      : channels == "rgba" ? frugal::Channels::rgba
                                           : frugal::Channels::as_stored,
          .at_least = each.at("at_least").get<std::uint32_t>(),
          .keep_16_bits = each.at("bits") == 16};
}

/// Smooth RGB of any size.
inline frugal::RawImage gradient(std::uint32_t height, std::uint32_t width,
                                 std::uint32_t channels) {
  frugal::RawImage image{.height = height, .width = width, .channels = channels};
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      for (std::uint32_t c = 0; c < channels; ++c) {
        image.bytes.push_back(static_cast<std::uint8_t>((y * 5 + x * (3 + c) + 40 * c) % 251));
      }
    }
  }
  return image;
}

/// What `read` throws, as its four parts; fails the test if it throws nothing else than `Error`.
template <class Error, class Read>
frugal::Fault fault_of(Read&& read) {
  try {
    static_cast<void>(read());
  } catch (Error const& error) {
    return error.fault();
  }
  throw std::runtime_error("nothing was thrown");
}

}  // namespace frugal_test::image
