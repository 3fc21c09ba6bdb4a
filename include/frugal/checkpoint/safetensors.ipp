// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/safetensors.hpp>

#include <frugal/checkpoint/safetensors_header.hpp>
#include <frugal/inline.hpp>

#include <cstring>

namespace frugal {

FRUGAL_INLINE Safetensors Safetensors::open(std::filesystem::path const& path) {
  MappedFile file(path);
  Safetensors tensors(file.bytes(), path.string());
  tensors.file_ = std::move(file);
  return tensors;
}

FRUGAL_INLINE TensorView Safetensors::operator[](std::size_t i) const {
  auto const& tensor = header_.tensors[i];
  return {.name = tensor.name,
          .dtype = tensor.dtype,
          .shape = std::span(header_.extents).subspan(tensor.shape, tensor.rank),
          .bytes = data_.subspan(tensor.begin, tensor.end - tensor.begin)};
}

FRUGAL_INLINE std::optional<TensorView> Safetensors::find(std::string_view name) const {
  auto const at = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [this](std::uint32_t i, std::string_view key) { return header_.tensors[i].name < key; });
  if (at == by_name_.end() || header_.tensors[*at].name != name) return std::nullopt;
  return (*this)[*at];
}

FRUGAL_INLINE TensorView Safetensors::at(std::string_view name) const {
  if (auto const tensor = find(name)) return *tensor;
  detail::safetensors_fail(name_, detail::safetensors_tensor(name), detail::safetensors_no_place,
                           "the file does not have the tensor",
                           "it has " + std::to_string(size()) + " others",
                           "Use a file that was written for this model.");
}

FRUGAL_INLINE std::optional<std::string_view> Safetensors::metadata(std::string_view key) const {
  auto const& texts = header_.metadata;
  auto const at =
      std::lower_bound(texts.begin(), texts.end(), key,
                       [](auto const& text, std::string_view wanted) { return text.key < wanted; });
  if (at == texts.end() || at->key != key) return std::nullopt;
  return at->value;
}

FRUGAL_INLINE std::vector<std::pair<std::string_view, std::string_view>> Safetensors::metadata()
    const {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  all.reserve(header_.metadata.size());
  for (auto const& text : header_.metadata) all.emplace_back(text.key, text.value);
  return all;
}

FRUGAL_INLINE Safetensors::Safetensors(std::span<std::byte const> bytes, std::string name)
    : name_(std::move(name)) {
  std::string_view json = header_of(bytes);
  std::uint64_t const data_at = detail::safetensors_length_bytes + json.size();
  data_ = bytes.subspan(data_at);
  // Up to 100 MB of padding need no parser.
  json = json.substr(0, json.find_last_not_of(' ') + 1);
  header_ = detail::SafetensorsHeaderReader(json, name_).read();
  by_name_ = detail::SafetensorsLayout(header_, name_, data_at, data_.size()).check();
}

FRUGAL_INLINE std::string_view Safetensors::header_of(std::span<std::byte const> bytes) const {
  constexpr std::uint64_t length_bytes = detail::safetensors_length_bytes;
  if (bytes.size() < length_bytes) {
    damaged(bytes.size(), bytes.empty() ? "the file is empty" : "the file is cut off",
            "expected 8 bytes with the header's length, found " + std::to_string(bytes.size()));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), length_bytes);
  if (length > detail::safetensors_most_header) {
    damaged(0, "this is not a safetensors file, or its header is too large",
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

}  // namespace frugal
