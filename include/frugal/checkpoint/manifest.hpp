// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/utf8.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace frugal {

/// A checkpoint in a newer format than this library knows. It may be whole; this library cannot
/// tell.
struct NewerFormatError : FormatError {
  using FormatError::FormatError;
};

/// One file of a checkpoint, as written.
struct FileEntry {
  std::string name;        ///< without a folder
  std::uint64_t size = 0;  ///< in bytes
  std::uint64_t hash = 0;  ///< XXH3, 64 bits

  bool operator==(FileEntry const&) const = default;
};

/// The contents of a checkpoint: manifest.json, written last.
///
/// Its last line holds the hash of all bytes before it, so that a changed manifest is detected like
/// any other changed file. The rest is plain JSON that anything can read.
struct Manifest {
  static constexpr std::string_view file_name = "manifest.json";
  static constexpr std::uint64_t newest_version = 1;
  static constexpr std::size_t largest = std::size_t{16} << 20;  ///< read limit, in bytes
  /// Larger serials are rejected: they would leave no room for the next in a JSON number.
  static constexpr std::uint64_t largest_serial = std::uint64_t{1} << 62;

  std::uint64_t step = 0;                 ///< optimizer steps done
  std::uint64_t serial = 0;               ///< counts the saves of a run; the highest is the newest
  std::int64_t saved_at = 0;              ///< seconds since 1970, UTC; used only for ages
  std::map<std::string, double> metrics;  ///< at this step; a non-finite value reads back as NaN
  std::vector<FileEntry> files;

  /// The text that parse_manifest reads.
  std::string text() const;
};

namespace detail {

inline std::span<std::byte const> bytes_of(std::string_view text) {
  return std::as_bytes(std::span<char const>(text.data(), text.size()));
}

/// Whether a name can neither leave the checkpoint's folder nor mean the manifest.
bool is_file_name(std::string_view name);

inline constexpr std::string_view manifest_seal = ",\n  \"xxh3\": \"";

class JsonFields;

/// Reads the fields of a manifest whose hash matched.
Manifest read_manifest(std::string_view text, JsonFields const& fields,
                       std::filesystem::path const& where);

}  // namespace detail

/// Parses the text of Manifest::text; `where` is the file's path, for errors. FormatError if it is
/// damaged or not a manifest, NewerFormatError for an unknown version.
Manifest parse_manifest(std::string_view text, std::filesystem::path const& where);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/manifest.ipp>
#endif
