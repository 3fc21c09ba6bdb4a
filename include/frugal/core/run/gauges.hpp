// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal {

/// Named values that policies measure during a run and that others show: dollars so far, the
/// device's idle share, bytes of memory. Each is the last measurement; Progress, Log and every
/// metric sink show them. Not saved: their owners set them again.
class Gauges {
 public:
  using Item = std::pair<std::string, double>;

  /// Sets a gauge, or replaces its value. Names are metric names: lower case, words joined by `_`,
  /// the unit last, as in "memory_bytes".
  FRUGAL_INLINE void set(std::string_view name, double value) {
    for (Item& item : items_) {
      if (item.first == name) {
        item.second = value;
        return;
      }
    }
    items_.emplace_back(name, value);
  }

  FRUGAL_INLINE std::optional<double> find(std::string_view name) const {
    for (Item const& item : items_) {
      if (item.first == name) return item.second;
    }
    return {};
  }

  /// In the order in which they were first set.
  std::vector<Item> const& items() const { return items_; }

 private:
  std::vector<Item> items_;  // a handful: searching is cheaper than hashing
};

}  // namespace frugal
