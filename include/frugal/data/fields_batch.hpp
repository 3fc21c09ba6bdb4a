// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, ... whatever one sample has.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include <frugal/core/source/batch.hpp>
#include <frugal/data/named_tensors.hpp>

namespace frugal {

/// A Batch with named tensors in addition: data [B, ...], target [B, ...], each field [B, ...]. A
/// sample without its first dimension is one too. PaddedBatch has fields as well.
struct FieldsBatch {
  at::Tensor data{};
  at::Tensor target{};  ///< may be undefined, for an objective that reads none
  NamedTensors fields{};

  /// DataError if there is none of that name; says which there are.
  at::Tensor const& field(std::string const& name) const { return detail::field_in(fields, name); }

  void each_tensor(auto&& f) { f(data, target, fields); }
};

template <>
struct batch_traits<FieldsBatch> {
  static std::int64_t tokens(FieldsBatch const& batch) {
    return batch.target.defined() ? batch.target.numel() : batch.data.numel();
  }
};

}  // namespace frugal
