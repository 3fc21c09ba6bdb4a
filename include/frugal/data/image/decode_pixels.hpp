// SPDX-License-Identifier: Apache-2.0
// needs: images
#pragma once

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <frugal/base/file.hpp>
#include <frugal/base/io_error.hpp>
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

/// The bytes of a file. DataError with the path and the reason for one that is missing, is a
/// folder, or changes while it is read; IoError for one that cannot be read now.
inline std::vector<std::byte> read_image_file(std::filesystem::path const& path) {
  std::string why = "its size changed while it was read";
  try {
    File file = File::open(path);
    std::vector<std::byte> bytes(file.size());
    if (file.read(bytes) == bytes.size()) return bytes;
  } catch (IoError const& error) {
    if (!detail::no_such_file(error.code)) throw;
    std::error_code ignored;
    why = std::filesystem::is_directory(path, ignored) ? "it is a folder" : error.fault().why;
  }
  throw DataError({.what = "the image cannot be read",
                   .where = path.string(),
                   .why = std::move(why),
                   .fix = "Give the path of a readable JPEG or PNG file."});
}

}  // namespace frugal
