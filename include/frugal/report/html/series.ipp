// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/series.hpp>

#include <frugal/inline.hpp>

#include <array>
#include <cmath>
#include <utility>

namespace frugal::html {

FRUGAL_INLINE void Series::add(Point const& point) {
  if (!std::isfinite(point.value) || std::abs(point.value) > largest) {
    ++not_finite_;
    return;
  }
  std::uint64_t const index = count_++;
  if (index % width_ == 0) columns_.emplace_back();
  columns_.back().take(Indexed{index, point});
  if (columns_.size() == most_columns && count_ % width_ == 0) halve();
}

FRUGAL_INLINE std::vector<Point> Series::points() const {
  std::vector<Point> out;
  for (Column const& column : columns_) {
    std::array<Indexed, 4> four{column.first, column.lowest, column.highest, column.last};
    if (four[2].index < four[1].index) std::swap(four[1], four[2]);
    for (std::size_t i = 0; i < four.size(); ++i) {
      if (i == 0 || four[i].index != four[i - 1].index) out.push_back(four[i].point);
    }
  }
  return out;
}

FRUGAL_INLINE void Series::Column::take(Indexed const& next) {
  if (empty) {
    first = lowest = highest = last = next;
    empty = false;
    return;
  }
  if (next.point.value < lowest.point.value) lowest = next;
  if (next.point.value > highest.point.value) highest = next;
  last = next;
}

FRUGAL_INLINE void Series::Column::take(Column const& next) {
  if (next.lowest.point.value < lowest.point.value) lowest = next.lowest;
  if (next.highest.point.value > highest.point.value) highest = next.highest;
  last = next.last;
}

FRUGAL_INLINE void Series::halve() {
  for (std::size_t i = 0; i < most_columns / 2; ++i) {
    Column pair = columns_[2 * i];
    pair.take(columns_[2 * i + 1]);
    columns_[i] = pair;
  }
  columns_.resize(most_columns / 2);
  width_ *= 2;
}

}  // namespace frugal::html
