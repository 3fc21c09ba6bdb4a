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

#include <frugal/checkpoint/dtype.hpp>

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
  at::Tensor tensor() const;

  /// "F32 [128, 784]".
  std::string type_and_shape() const;
};

/// The tensors of one or several files of weights, by name. Nothing is read before tensor().
class StoredWeights {
 public:
  explicit StoredWeights(std::string place) : place_(std::move(place)) {}

  /// What errors call it: the file, or the index of several.
  std::string const& place() const { return place_; }
  std::vector<StoredWeight> const& all() const { return all_; }

  StoredWeight const* find(std::string_view name) const;

  /// False if there is one of that name.
  bool add(StoredWeight weight);
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
std::vector<std::int64_t> packed_strides(std::vector<std::int64_t> const& sizes);

StoredWeight stored_weight(TensorView const& view);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/stored_weights.ipp>
#endif
