// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/checkpoint/dtype.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

/// A name from a file, made safe for an error text: quoted, printable ASCII, and short. A hostile
/// name may be megabytes long, or move a terminal's cursor.
std::string safetensors_quoted(std::string_view text);

/// For faults without a byte offset.
inline constexpr std::uint64_t safetensors_no_place = std::numeric_limits<std::uint64_t>::max();

/// The fix for a damaged file.
inline constexpr char safetensors_mend[] = "Use another copy of the file, or write it again.";

/// Throws FormatError. `part` is the part of the file at `byte`: a tensor, the metadata, or empty.
[[noreturn]] void safetensors_fail(std::string const& file, std::string const& part,
                                   std::uint64_t byte, std::string what, std::string why,
                                   std::string fix = safetensors_mend);

/// "tensor "encoder.weight"", as in errors.
inline std::string safetensors_tensor(std::string_view name) {
  return "tensor " + safetensors_quoted(name);
}

/// The metadata key of the format, and the header limit in bytes.
inline constexpr std::string_view safetensors_metadata_key = "__metadata__";
inline constexpr std::uint64_t safetensors_most_header = 100'000'000;
/// The header's length precedes the header.
inline constexpr std::uint64_t safetensors_length_bytes = 8;

/// A tensor as the header describes it, unchecked: `begin` and `end` in bytes from the first byte
/// of data, `rank` extents from `extents[shape]`, `offset` of its name in the file.
struct SafetensorsEntry {
  std::string_view name;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t shape = 0;
  std::uint32_t rank = 0;
  std::uint32_t offset = 0;
  Dtype dtype = Dtype::u8;
};

struct SafetensorsText {
  std::string_view key;
  std::string_view value;
  std::uint64_t offset = 0;
};

/// A header as it stands in the file, in file order. Memory is a fixed number of bytes per byte of
/// the file, so that a hostile header cannot expand.
struct SafetensorsHeader {
  std::unique_ptr<char[]> text;  ///< storage of the names and the metadata
  std::vector<std::uint64_t> extents;
  std::vector<SafetensorsEntry> tensors;
  std::vector<SafetensorsText> metadata;
};

}  // namespace frugal::detail

namespace frugal {

/// The tensors of a safetensors file, in the order of their bytes.
///
/// Cost    reading the header; the tensors' bytes are not touched.
/// Format  huggingface/safetensors, README, section "Format": the header's length as a
///         little-endian uint64, the header in JSON, the bytes. Where it leaves open what a reader
///         accepts, this one is strict: see docs/checkpoint/safetensors.md.
/// Errors  FormatError with file, tensor and byte for every violation. Every view that this returns
///         lies inside the file, whatever the header says.
class Safetensors {
 public:
  /// Parses a file in memory, which must outlive the tensors; errors call it `name`.
  static Safetensors parse(std::span<std::byte const> bytes, std::string name) {
    return Safetensors(bytes, std::move(name));
  }

  /// Maps a file on disk for the lifetime of this object; see MappedFile for the conditions.
  /// Errors  also StoreError, if it cannot be opened.
  static Safetensors open(std::filesystem::path const& path);

  std::size_t size() const noexcept { return header_.tensors.size(); }

  /// The i-th tensor; i must be below size().
  TensorView operator[](std::size_t i) const;

  /// Finds a tensor by name in logarithmic time.
  std::optional<TensorView> find(std::string_view name) const;

  /// Finds a tensor by name. FormatError if there is none.
  TensorView at(std::string_view name) const;

  /// The value of a metadata key.
  std::optional<std::string_view> metadata(std::string_view key) const;

  /// All metadata as pairs, sorted by key.
  std::vector<std::pair<std::string_view, std::string_view>> metadata() const;

  /// The file's name in errors.
  std::string const& name() const noexcept { return name_; }

 private:
  Safetensors(std::span<std::byte const> bytes, std::string name);

  std::string_view header_of(std::span<std::byte const> bytes) const;

  [[noreturn]] void damaged(std::uint64_t byte, std::string what, std::string why) const {
    detail::safetensors_fail(name_, "", byte, std::move(what), std::move(why));
  }

  std::string name_;
  MappedFile file_;
  std::span<std::byte const> data_;
  detail::SafetensorsHeader header_;
  std::vector<std::uint32_t> by_name_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/safetensors.ipp>
#endif
