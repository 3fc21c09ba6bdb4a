// SPDX-License-Identifier: Apache-2.0
// needs: images
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <frugal/data/image/jpeg.hpp>
#include <frugal/data/image/pixels.hpp>
#include <frugal/data/image/png.hpp>
#include <frugal/error.hpp>

namespace frugal {

namespace detail {

inline bool begins_with(std::span<std::byte const> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

/// The format of a file that is no JPEG and no PNG, by its first bytes.
inline std::string other_format(std::span<std::byte const> bytes) {
  if (bytes.empty()) return "it is empty";
  if (begins_with(bytes, "GIF8")) return "it is a GIF";
  if (begins_with(bytes, "BM")) return "it is a BMP";
  if (begins_with(bytes, "II*") || begins_with(bytes, std::string_view("MM\0*", 4))) {
    return "it is a TIFF";
  }
  if (begins_with(bytes, "RIFF") && bytes.size() >= 12 && begins_with(bytes.subspan(8), "WEBP")) {
    return "it is a WebP";
  }
  if (bytes.size() >= 12 && begins_with(bytes.subspan(4), "ftyp")) return "it is a HEIF or AVIF";
  return "its first bytes are neither FF D8 FF nor 89 'PNG'";
}

}  // namespace detail

/// Decodes a JPEG or PNG file, which its first bytes distinguish. Errors call it `name`.
/// Errors  those of decode_jpeg and decode_png; DataError for another format, which it names.
inline RawImage decode_pixels(std::span<std::byte const> bytes, DecodeOptions const& options = {},
                              std::string const& name = "image") {
  if (detail::begins_with(bytes, "\xff\xd8\xff")) return decode_jpeg(bytes, options, name);
  if (detail::begins_with(bytes, "\x89PNG")) return decode_png(bytes, options, name);
  detail::refuse_image("the file is neither JPEG nor PNG", name, 0, detail::other_format(bytes),
                       "Convert it, or leave it out.");
}

/// The bytes of a file. Throws DataError with the path and the reason if they cannot be read.
inline std::vector<std::byte> read_image_file(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  int const reason = errno;
  std::vector<std::byte> bytes;
  std::error_code unknown;
  bool const folder = std::filesystem::is_directory(path, unknown);
  if (file && !folder) {
    auto const size = std::filesystem::file_size(path, unknown);
    if (!unknown) bytes.resize(static_cast<std::size_t>(size));
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!unknown && file.gcount() == static_cast<std::streamsize>(bytes.size())) return bytes;
  }
  throw DataError({.what = "the image cannot be read",
                   .where = path.string(),
                   .why = folder           ? "it is a folder"
                          : file.is_open() ? "its size changed while it was read"
                                           : std::strerror(reason),
                   .fix = "Give the path of a readable JPEG or PNG file."});
}

}  // namespace frugal
