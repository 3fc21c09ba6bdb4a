// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// Named values that policies measure during a run and that others show: dollars so far, the
/// device's idle share, bytes of memory. Each is the last measurement; Progress, Log and every
/// metric sink show them. Not saved: their owners set them again.
class Gauges {
 public:
  using Item = std::pair<std::string, double>;

  /// Sets a gauge, or replaces its value. Names are metric names: lower case, words joined by `_`,
  /// the unit last, as in "memory_bytes".
  void set(std::string_view name, double value);

  std::optional<double> find(std::string_view name) const;

  /// In the order in which they were first set.
  std::vector<Item> const& items() const { return items_; }

 private:
  std::vector<Item> items_;  // a handful: searching is cheaper than hashing
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/gauges.ipp>
#endif
