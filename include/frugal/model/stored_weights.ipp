// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/stored_weights.hpp>

#include <frugal/base/file.hpp>
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/data/tensor_dtype.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor StoredWeight::tensor() const {
  std::size_t const width = c10::elementSize(type);
  auto* const data = const_cast<std::byte*>(bytes.data());
  if (reinterpret_cast<std::uintptr_t>(data) % width == 0) {
    return at::from_blob(data, sizes, strides, at::TensorOptions().dtype(type));
  }
  at::Tensor const whole =
      at::empty({static_cast<std::int64_t>(bytes.size() / width)}, at::TensorOptions().dtype(type));
  std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(whole.mutable_data_ptr()));
  return whole.as_strided(sizes, strides);
}

FRUGAL_INLINE std::string StoredWeight::type_and_shape() const {
  std::string text = type_name + " [";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
  }
  return text + "]";
}

FRUGAL_INLINE StoredWeight const* StoredWeights::find(std::string_view name) const {
  auto const found = places_.find(std::string(name));
  return found == places_.end() ? nullptr : &all_[found->second];
}

FRUGAL_INLINE bool StoredWeights::add(StoredWeight weight) {
  if (!places_.emplace(weight.name, all_.size()).second) return false;
  all_.push_back(std::move(weight));
  return true;
}

FRUGAL_INLINE std::vector<std::int64_t> packed_strides(std::vector<std::int64_t> const& sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<std::int64_t>(sizes[i], 1);
  }
  return strides;
}

FRUGAL_INLINE StoredWeight stored_weight(TensorView const& view) {
  StoredWeight weight{.name = std::string(view.name),
                      .type_name = std::string(dtype_name(view.dtype)),
                      .type = torch_type(view.dtype).value_or(at::ScalarType::Undefined),
                      .sizes = {view.shape.begin(), view.shape.end()},
                      .strides = {},
                      .bytes = view.bytes};
  weight.strides = packed_strides(weight.sizes);
  return weight;
}

}  // namespace frugal::detail
