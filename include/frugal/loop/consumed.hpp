// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <frugal/data/source.hpp>

namespace frugal::detail {

/// The position in the epoch after some batches of a source: that which the source reports, or
/// else the number of their samples. Empty for a source that does not report it.
template <class S>
class Consumed {
 public:
  explicit Consumed(S const&) {}
  static std::uint64_t after(std::uint64_t position, std::uint64_t samples) {
    return position + samples;
  }
};
template <ConsumingSource S>
class Consumed<S> {
 public:
  explicit Consumed(S const& source) : source_(&source) {}
  std::uint64_t after(std::uint64_t, std::uint64_t) const {
    return static_cast<std::uint64_t>(source_->consumed());
  }

 private:
  S const* source_;
};

}  // namespace frugal::detail
