// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, ... whatever one sample has.
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>

namespace frugal {

/// Tensors of a sample or a batch in addition to its data and target: an attention mask, the output
/// of a teacher.
using NamedTensors = std::map<std::string, at::Tensor>;

namespace detail {

/// DataError if there is none of that name; says which there are.
at::Tensor const& field_in(NamedTensors const& fields, std::string const& name);

/// A sample or a batch with a member for fields.
template <class B>
concept FieldsMember = DataMember<B> && requires(B const& batch) {
  requires std::same_as<std::remove_cvref_t<decltype(batch.fields)>, NamedTensors>;
};

/// A map of tensors, whose entries besides the data and the target are fields.
template <class S>
concept MapOfTensors = Keyed<S> && IsTensor<typename S::mapped_type>;

template <class S>
concept HasFields = FieldsMember<S> || MapOfTensors<S>;

template <HasFields S>
NamedTensors fields_of(S const& sample) {
  if constexpr (FieldsMember<S>) {
    return sample.fields;
  } else {
    NamedTensors fields;
    auto const* const data = entry_if(sample, "data", "input_ids");
    auto const* const target = entry_if(sample, "target", "labels");
    for (auto const& entry : sample) {
      if (&entry.second == data || &entry.second == target) continue;
      fields.emplace(std::string(entry.first), entry.second);
    }
    return fields;
  }
}

}  // namespace detail

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

#ifndef FRUGAL_COMPILED
#include <frugal/data/fields_batch.ipp>
#endif
