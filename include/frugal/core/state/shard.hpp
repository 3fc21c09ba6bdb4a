// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <frugal/inline.hpp>

namespace frugal {

/// Describes which part of a tensor this process holds, when it is split over several processes.
///
///     archive("weight", tensor);                                     // a whole tensor
///     archive.shard("weight", tensor, {.dim = 0, .index = rank, .count = world});
///
/// A saved shard loads only as the same shard, never as a whole tensor.
struct Shard {
  std::int64_t dim = 0;     ///< dimension along which the tensor is split
  std::uint64_t index = 0;  ///< 0 up to, but not including, count
  std::uint64_t count = 1;

  FRUGAL_INLINE std::string text() const {
    return "part " + std::to_string(index + 1) + " of " + std::to_string(count) +
           " along dimension " + std::to_string(dim);
  }

  friend bool operator==(Shard const&, Shard const&) = default;

  template <class Archive>
  void persist(Archive& archive) {
    archive("dim", dim);
    archive("index", index);
    archive("count", count);
  }
};

namespace detail {

/// The scope next to a tensor's value that describes its shard.
inline std::string shard_scope(std::string name) { return name.append(".shard"); }

}  // namespace detail
}  // namespace frugal
