// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <map>
#include <string>
#include <type_traits>

#include <frugal/core/source/fields.hpp>

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
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/named_tensors.ipp>
#endif
