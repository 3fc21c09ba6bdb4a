// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/mapped_file.hpp>
#include <frugal/checkpoint/safetensors_header.hpp>
#include <frugal/checkpoint/safetensors_layout.hpp>
#include <frugal/checkpoint/tensor_view.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
  FRUGAL_INLINE static Safetensors open(std::filesystem::path const& path) {
    MappedFile file(path);
    Safetensors tensors(file.bytes(), path.string());
    tensors.file_ = std::move(file);
    return tensors;
  }

  std::size_t size() const noexcept { return header_.tensors.size(); }

  /// The i-th tensor; i must be below size().
  FRUGAL_INLINE TensorView operator[](std::size_t i) const {
    auto const& tensor = header_.tensors[i];
    return {.name = tensor.name,
            .dtype = tensor.dtype,
            .shape = std::span(header_.extents).subspan(tensor.shape, tensor.rank),
            .bytes = data_.subspan(tensor.begin, tensor.end - tensor.begin)};
  }

  /// Finds a tensor by name in logarithmic time.
  FRUGAL_INLINE std::optional<TensorView> find(std::string_view name) const {
    auto const at = std::lower_bound(
        by_name_.begin(), by_name_.end(), name,
        [this](std::uint32_t i, std::string_view key) { return header_.tensors[i].name < key; });
    if (at == by_name_.end() || header_.tensors[*at].name != name) return std::nullopt;
    return (*this)[*at];
  }

  /// Finds a tensor by name. FormatError if there is none.
  FRUGAL_INLINE TensorView at(std::string_view name) const {
    if (auto const tensor = find(name)) return *tensor;
    detail::safetensors_fail(name_, detail::safetensors_tensor(name), detail::safetensors_no_place,
                             "the file does not have the tensor",
                             "it has " + std::to_string(size()) + " others",
                             "Use a file that was written for this model.");
  }

  /// The value of a metadata key.
  FRUGAL_INLINE std::optional<std::string_view> metadata(std::string_view key) const {
    auto const& texts = header_.metadata;
    auto const at = std::lower_bound(
        texts.begin(), texts.end(), key,
        [](auto const& text, std::string_view wanted) { return text.key < wanted; });
    if (at == texts.end() || at->key != key) return std::nullopt;
    return at->value;
  }

  /// All metadata as pairs, sorted by key.
  FRUGAL_INLINE std::vector<std::pair<std::string_view, std::string_view>> metadata() const {
    std::vector<std::pair<std::string_view, std::string_view>> all;
    all.reserve(header_.metadata.size());
    for (auto const& text : header_.metadata) all.emplace_back(text.key, text.value);
    return all;
  }

  /// The file's name in errors.
  std::string const& name() const noexcept { return name_; }

 private:
  FRUGAL_INLINE Safetensors(std::span<std::byte const> bytes, std::string name)
      : name_(std::move(name)) {
    std::string_view json = header_of(bytes);
    std::uint64_t const data_at = detail::safetensors_length_bytes + json.size();
    data_ = bytes.subspan(data_at);
    // Up to 100 MB of padding need no parser.
    json = json.substr(0, json.find_last_not_of(' ') + 1);
    header_ = detail::SafetensorsHeaderReader(json, name_).read();
    by_name_ = detail::SafetensorsLayout(header_, name_, data_at, data_.size()).check();
  }

  FRUGAL_INLINE std::string_view header_of(std::span<std::byte const> bytes) const {
    constexpr std::uint64_t length_bytes = detail::safetensors_length_bytes;
    if (bytes.size() < length_bytes) {
      damaged(bytes.size(), bytes.empty() ? "the file is empty" : "the file is cut off",
              "expected 8 bytes with the header's length, found " + std::to_string(bytes.size()));
    }
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), length_bytes);
    if (length > detail::safetensors_most_header) {
      damaged(
          0, "this is not a safetensors file, or its header is too large",
          "a header has at most 100000000 bytes, and this one claims " + std::to_string(length));
    }
    std::string_view const json(reinterpret_cast<char const*>(bytes.data()) + length_bytes,
                                std::min(length, bytes.size() - length_bytes));
    // Checked before the end: in a file of another format the length means nothing.
    if (length == 0 || (!json.empty() && json.front() != '{')) {
      damaged(length == 0 ? 0 : length_bytes, "this is not a safetensors file",
              length == 0 ? "its header is empty"
                          : "a header begins with {, and this one with " +
                                detail::safetensors_quoted(json.substr(0, 1)));
    }
    if (json.size() < length) {
      damaged(bytes.size(), "the file is cut off",
              "expected " + std::to_string(length) + " bytes of header, found " +
                  std::to_string(json.size()));
    }
    return json;
  }

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
