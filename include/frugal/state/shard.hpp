// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace frugal {

/// Which part of a whole a tensor is, where several processes have one each.
///
///     archive("weight", tensor);                                     // a whole tensor
///     archive.shard("weight", tensor, {.dim = 0, .index = rank, .count = world});
///
/// What was saved as a part is loaded as the same part, and not as a whole.
struct Shard {
  std::int64_t dim = 0;     ///< along which the whole is cut
  std::uint64_t index = 0;  ///< 0 up to, but not including, count
  std::uint64_t count = 1;

  std::string text() const {
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

/// The scope beside a tensor's value that says which part it is.
inline std::string shard_scope(std::string name) { return name.append(".shard"); }

}  // namespace detail
}  // namespace frugal
