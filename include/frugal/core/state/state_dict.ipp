// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/state/state_dict.hpp>

#include <frugal/inline.hpp>

#include <bit>
#include <cstring>

namespace frugal {

FRUGAL_INLINE bool operator==(StateDict const& a, StateDict const& b) {
  if (a.values.size() != b.values.size() || a.tensors.size() != b.tensors.size()) return false;
  for (auto const& [path, value] : a.values) {
    auto const other = b.values.find(path);
    if (other == b.values.end() || !StateDict::same_bits(value, other->second)) return false;
  }
  for (auto const& [path, tensor] : a.tensors) {
    auto const other = b.tensors.find(path);
    if (other == b.tensors.end() || !StateDict::same_bits(tensor, other->second)) return false;
  }
  return true;
}

FRUGAL_INLINE bool StateDict::same_bits(Value const& a, Value const& b) {
  if (a.index() != b.index()) return false;
  if (auto const* const left = std::get_if<double>(&a)) {
    return std::bit_cast<std::uint64_t>(*left) ==
           std::bit_cast<std::uint64_t>(*std::get_if<double>(&b));
  }
  return same<bool>(a, b) && same<std::int64_t>(a, b) && same<std::uint64_t>(a, b) &&
         same<std::string>(a, b);
}

FRUGAL_INLINE bool StateDict::same_bits(at::Tensor const& a, at::Tensor const& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  at::Tensor const left = a.cpu().contiguous();
  at::Tensor const right = b.cpu().contiguous();
  return std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

}  // namespace frugal
