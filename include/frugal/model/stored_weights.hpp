// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <frugal/base/mapped_file.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/checkpoint/tensor_view.hpp>
#include <frugal/data/tensor_dtype.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// A tensor in a file of weights: what is known of it before it is read.
struct StoredWeight {
  std::string name{};
  std::string type_name{};                          ///< as errors call it
  at::ScalarType type = at::ScalarType::Undefined;  ///< Undefined: LibTorch lacks it
  std::vector<std::int64_t> sizes{};
  std::vector<std::int64_t> strides{};
  std::span<std::byte const> bytes{};  ///< mapped, from the first element to the last

  /// The tensor, where the file lies; a copy if the file stores it at an address at which its type
  /// cannot be read. Never write to it.
  FRUGAL_INLINE at::Tensor tensor() const {
    std::size_t const width = c10::elementSize(type);
    auto* const data = const_cast<std::byte*>(bytes.data());
    if (reinterpret_cast<std::uintptr_t>(data) % width == 0) {
      return at::from_blob(data, sizes, strides, at::TensorOptions().dtype(type));
    }
    at::Tensor const whole = at::empty({static_cast<std::int64_t>(bytes.size() / width)},
                                       at::TensorOptions().dtype(type));
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(whole.mutable_data_ptr()));
    return whole.as_strided(sizes, strides);
  }

  /// "F32 [128, 784]".
  FRUGAL_INLINE std::string type_and_shape() const {
    std::string text = type_name + " [";
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
    }
    return text + "]";
  }
};

/// The tensors of one or several files of weights, by name. Nothing is read before tensor().
class StoredWeights {
 public:
  explicit StoredWeights(std::string place) : place_(std::move(place)) {}

  /// What errors call it: the file, or the index of several.
  std::string const& place() const { return place_; }
  std::vector<StoredWeight> const& all() const { return all_; }

  FRUGAL_INLINE StoredWeight const* find(std::string_view name) const {
    auto const found = places_.find(std::string(name));
    return found == places_.end() ? nullptr : &all_[found->second];
  }

  /// False if there is one of that name.
  FRUGAL_INLINE bool add(StoredWeight weight) {
    if (!places_.emplace(weight.name, all_.size()).second) return false;
    all_.push_back(std::move(weight));
    return true;
  }
  /// The identity of the module's fixed tensors, of a checkpoint that leaves them out; else empty.
  std::string fixed{};

  /// Keeps a file open for as long as this.
  void keep(std::shared_ptr<void const> file) { files_.push_back(std::move(file)); }

 private:
  std::string place_;
  std::vector<StoredWeight> all_;
  std::unordered_map<std::string, std::size_t> places_;
  std::vector<std::shared_ptr<void const>> files_;
};

/// The strides of a tensor without gaps.
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
