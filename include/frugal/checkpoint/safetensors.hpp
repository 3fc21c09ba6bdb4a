// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/mapped_file.hpp>
#include <frugal/checkpoint/safetensors_fault.hpp>
#include <frugal/checkpoint/safetensors_header.hpp>
#include <frugal/checkpoint/tensor_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
