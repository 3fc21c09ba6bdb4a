// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// The rules of WebDataset's layout, for names and sizes as a tar reader hands them over. Without
// libarchive, so that they can be fuzzed.
namespace frugal::detail {

/// A member's name, cut at the first dot of its base name: "a/0001.seg.png" is the field
/// "seg.png" of the sample "a/0001".
struct MemberName {
  std::string_view key;
  std::string extension;  ///< in lower case (ASCII); may be empty
};

/// Nothing for a name that belongs to no sample: a base name without a dot, or that begins with
/// one.
///
/// Source  webdataset 1.0, base_plus_ext and group_by_keys. One difference: "d/.x" is the field "x"
///         of a sample "d/" there.
inline std::optional<MemberName> split_member_name(std::string_view name) {
  auto const slash = name.rfind('/');
  std::size_t const base = slash == std::string_view::npos ? 0 : slash + 1;
  std::size_t const dot = name.find('.', base);
  if (dot == std::string_view::npos || dot == base) return std::nullopt;
  MemberName out{.key = name.substr(0, dot), .extension = std::string(name.substr(dot + 1))};
  for (char& c : out.extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

/// Members of WebDataset that describe the shard, and those that macOS adds: "__meta__/x.json".
inline bool is_meta_name(std::string_view name) {
  std::string_view const first = name.substr(0, name.find('/'));
  return first.size() >= 4 && first.starts_with("__") && first.ends_with("__");
}

/// Why a member's name is refused; empty if it is not. Keys become file names again when somebody
/// unpacks them, and a name that leads out of its folder has no good use.
inline std::string unsafe_name(std::string_view name) {
  constexpr std::size_t longest = 4096;  // PATH_MAX of Linux
  if (name.empty()) return "a member has no name";
  if (name.size() > longest) {
    return "a member's name has " + std::to_string(name.size()) + " bytes, and at most " +
           std::to_string(longest) + " are read";
  }
  if (name.front() == '/') return "a member's name is an absolute path";
  for (char const c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return "a member's name has control characters";
    }
  }
  for (std::size_t at = 0; at <= name.size();) {
    std::size_t const end = std::min(name.find('/', at), name.size());
    if (name.substr(at, end - at) == "..") return "a member's name leads out of its folder (..)";
    at = end + 1;
  }
  return {};
}

/// Where the bytes of a member lie in the tar file.
struct MemberPlace {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;

  std::uint64_t end() const { return offset + size; }
};

/// Why a member's place is refused; empty if the file holds all of it.
inline std::string outside_of_file(MemberPlace const& place, std::uint64_t file_size) {
  std::uint64_t const left = place.offset > file_size ? 0 : file_size - place.offset;
  if (place.offset <= file_size && place.size <= left) return {};
  return "the member has " + std::to_string(place.size) + " bytes from byte " +
         std::to_string(place.offset) + " on, and the file ends " + std::to_string(left) +
         " bytes after it";
}

/// A member's name for error messages: printable, and not longer than a line.
inline std::string shown_name(std::string_view name) {
  constexpr std::size_t most = 120;
  std::string out(name.substr(0, most));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return name.size() > most ? out + "..." : out;
}

}  // namespace frugal::detail
