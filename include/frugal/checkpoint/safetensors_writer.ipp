// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/safetensors_writer.hpp>

#include <frugal/base/in_order.hpp>
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <utility>

namespace frugal {

FRUGAL_INLINE SafetensorsWriter::SafetensorsWriter(std::vector<TensorView> tensors,
                                                   Metadata const& metadata, std::string name)
    : name_(std::move(name)) {
  detail::put_in_order(tensors, [](TensorView const& a, TensorView const& b) {
    return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
  });
  for (TensorView const& tensor : tensors) check(tensor);
  check_names(tensors);
  write_header(tensors, metadata);
  data_.reserve(tensors.size());
  for (TensorView const& tensor : tensors) data_.push_back(tensor.bytes);
}

FRUGAL_INLINE void SafetensorsWriter::check(TensorView const& tensor) const {
  auto const bits = tensor_bits(tensor.dtype, tensor.shape);
  std::string const type(dtype_name(tensor.dtype));
  if (!bits) {
    refuse(tensor.name, "the tensor is too large",
           "the product of its extents does not fit into 64 bits", "Check its shape.");
  }
  if (*bits % 8 != 0) {
    refuse(tensor.name, "the tensor ends within a byte",
           std::to_string(*bits) + " bits of " + type + " are not a whole number of bytes",
           "Pad the tensor.");
  }
  if (*bits / 8 != tensor.bytes.size()) {
    refuse(tensor.name, "the tensor's shape does not fit its bytes",
           "its shape of " + type + " takes " + std::to_string(*bits / 8) + " bytes, and " +
               std::to_string(tensor.bytes.size()) + " are given",
           "Give all bytes of a contiguous tensor, and no others.");
  }
  if (tensor.name == detail::safetensors_metadata_key) {
    refuse(tensor.name, "the tensor has the name of the metadata", "the format reserves that name",
           "Give the tensor another name.");
  }
}

FRUGAL_INLINE void SafetensorsWriter::check_names(std::vector<TensorView> const& tensors) const {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (TensorView const& tensor : tensors) names.push_back(tensor.name);
  detail::put_in_order(names, [](std::string_view a, std::string_view b) { return a < b; });
  if (auto const twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    refuse(*twice, "two tensors have one name", "", "Give each a name of its own.");
  }
}

FRUGAL_INLINE void SafetensorsWriter::write_header(std::vector<TensorView> const& tensors,
                                                   Metadata const& metadata) {
  detail::JsonWriter out(std::string(detail::safetensors_length_bytes, '\0'));
  out.object();
  if (!metadata.empty()) {
    out.key(detail::safetensors_metadata_key).object();
    for (auto const& [key, value] : metadata) out.add(utf8(key), utf8(value));
    out.end();
  }
  for (TensorView const& tensor : tensors) describe(out, tensor);
  header_ = out.str();
  // Padding aligns the first tensor, and by their order all others.
  header_.resize((header_.size() + 7) / 8 * 8, ' ');
  std::uint64_t const length = header_.size() - detail::safetensors_length_bytes;
  if (length > detail::safetensors_most_header) {
    detail::safetensors_fail(name_, "", detail::safetensors_no_place, "the header is too large",
                             std::to_string(tensors.size()) + " tensors and the metadata take " +
                                 std::to_string(length) + " bytes, and 100000000 are allowed",
                             "Write several files, or less metadata.");
  }
  std::memcpy(header_.data(), &length, sizeof length);
}

FRUGAL_INLINE void SafetensorsWriter::describe(detail::JsonWriter& out, TensorView const& tensor) {
  out.key(utf8(tensor.name)).object().add("dtype", dtype_name(tensor.dtype));
  out.key("shape").array();
  for (std::uint64_t const extent : tensor.shape) out.value(extent);
  out.end().key("data_offsets").array().value(data_size_);
  data_size_ += tensor.bytes.size();
  out.value(data_size_).end().end();
}

FRUGAL_INLINE std::string_view SafetensorsWriter::utf8(std::string_view text) const {
  if (detail::is_utf8(text)) return text;
  detail::safetensors_fail(
      name_, "", detail::safetensors_no_place, "a name or a text of the metadata is not UTF-8",
      "it reads " + detail::safetensors_quoted(text), "Give it in UTF-8, as JSON demands.");
}

FRUGAL_INLINE void SafetensorsWriter::refuse(std::string_view tensor, std::string what,
                                             std::string why, std::string fix) const {
  detail::safetensors_fail(name_, detail::safetensors_tensor(tensor), detail::safetensors_no_place,
                           std::move(what), std::move(why), std::move(fix));
}

}  // namespace frugal
