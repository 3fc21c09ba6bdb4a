// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/safetensors_layout.hpp>

#include <frugal/base/in_order.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <span>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::uint32_t> SafetensorsLayout::check() {
  auto const by_range = [](auto const& a, auto const& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    return a.end != b.end ? a.end < b.end : a.offset < b.offset;
  };
  auto& tensors = header_.tensors;
  if (!std::is_sorted(tensors.begin(), tensors.end(), by_range)) {
    put_in_order(tensors, by_range);
  }
  std::vector<std::uint32_t> index = index_names();
  sort_metadata();
  for (SafetensorsEntry const& tensor : tensors) check_size(tensor);
  check_cover();
  return index;
}

FRUGAL_INLINE std::vector<std::uint32_t> SafetensorsLayout::index_names() const {
  auto const& tensors = header_.tensors;
  auto const order = positions_in_order(tensors.size(), [&](std::size_t a, std::size_t b) {
    return tensors[a].name < tensors[b].name;
  });
  std::vector<std::uint32_t> index(order.begin(), order.end());
  for (std::size_t i = 1; i < index.size(); ++i) {
    auto const& a = tensors[index[i - 1]];
    auto const& b = tensors[index[i]];
    if (a.name != b.name) continue;
    fail(b.offset > a.offset ? b : a, std::max(a.offset, b.offset),
         "the header has two tensors of one name",
         "the other one stands at byte " + std::to_string(std::min(a.offset, b.offset)));
  }
  return index;
}

FRUGAL_INLINE void SafetensorsLayout::sort_metadata() {
  auto& texts = header_.metadata;
  put_in_order(texts, [](SafetensorsText const& a, SafetensorsText const& b) {
    return a.key != b.key ? a.key < b.key : a.offset < b.offset;
  });
  auto const twice = std::adjacent_find(
      texts.begin(), texts.end(), [](auto const& a, auto const& b) { return a.key == b.key; });
  if (twice == texts.end()) return;
  fail("__metadata__", twice[1].offset, "a key stands twice in the metadata",
       safetensors_quoted(twice->key) + " stands at byte " + std::to_string(twice->offset) +
           " as well");
}

FRUGAL_INLINE void SafetensorsLayout::check_size(SafetensorsEntry const& tensor) const {
  if (tensor.begin > tensor.end) {
    fail(tensor, tensor.offset, "the tensor ends before it begins",
         "its data_offsets are " + range(tensor));
  }
  auto const bits =
      tensor_bits(tensor.dtype, std::span(header_.extents).subspan(tensor.shape, tensor.rank));
  if (!bits) {
    fail(tensor, tensor.offset, "the tensor is too large",
         "the product of its extents does not fit into 64 bits");
  }
  if (*bits % 8 != 0) {
    fail(tensor, tensor.offset, "the tensor ends within a byte",
         std::to_string(*bits) + " bits of " + std::string(dtype_name(tensor.dtype)) +
             " are not a whole number of bytes");
  }
  if (*bits / 8 != tensor.end - tensor.begin) {
    fail(tensor, tensor.offset, "the tensor's shape does not fit its bytes",
         "its shape of " + std::string(dtype_name(tensor.dtype)) + " takes " +
             std::to_string(*bits / 8) + " bytes, and its data_offsets " + range(tensor) + " are " +
             std::to_string(tensor.end - tensor.begin));
  }
}

FRUGAL_INLINE void SafetensorsLayout::check_cover() const {
  std::uint64_t covered = 0;
  SafetensorsEntry const* last = nullptr;
  for (SafetensorsEntry const& tensor : header_.tensors) {
    if (tensor.begin > covered) {
      fail(tensor, data_at_ + covered, "there is a hole before the tensor",
           "bytes " + std::to_string(covered) + " to " + std::to_string(tensor.begin) +
               " of the data belong to no tensor");
    }
    if (tensor.begin < covered) {
      fail(tensor, data_at_ + tensor.begin, "the tensor overlaps another one",
           "its data_offsets are " + range(tensor) + ", and those of " +
               safetensors_tensor(last->name) + " are " + range(*last));
    }
    if (tensor.end > data_size_) {
      fail(tensor, data_at_ + data_size_, "the file is cut off",
           "the tensor ends at byte " + std::to_string(tensor.end) + " of the data, and " +
               std::to_string(data_size_) + " bytes of data are there");
    }
    covered = tensor.end;
    last = &tensor;
  }
  if (covered != data_size_) {
    fail("", data_at_ + covered, "bytes follow the last tensor",
         std::to_string(data_size_ - covered) + " bytes belong to no tensor");
  }
}

}  // namespace frugal::detail
