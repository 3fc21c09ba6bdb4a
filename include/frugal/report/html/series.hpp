// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal::html {

/// One value of a run, and where on each axis it was measured.
struct Point {
  double step = 0;
  double seconds = 0;
  double dollars = std::numeric_limits<double>::quiet_NaN();  ///< unknown
  double value = 0;
};

/// A series of any length in bounded memory: per column of a chart the first, the lowest, the
/// highest and the last point. A chart of as many pixels looks as one of all points does.
///
/// Source  U. Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014.
///         Columns have equal numbers of points; when all are full, neighbours are merged.
class Series {
 public:
  static constexpr std::size_t most_columns = 320;
  /// Values beyond cannot be drawn: differences of two overflow.
  static constexpr double largest = 1e200;

  /// A value that is no finite number is counted, and left out.
  FRUGAL_INLINE void add(Point const& point) {
    if (!std::isfinite(point.value) || std::abs(point.value) > largest) {
      ++not_finite_;
      return;
    }
    std::uint64_t const index = count_++;
    if (index % width_ == 0) columns_.emplace_back();
    columns_.back().take(Indexed{index, point});
    if (columns_.size() == most_columns && count_ % width_ == 0) halve();
  }

  std::uint64_t count() const { return count_; }  ///< of finite values
  std::uint64_t not_finite() const { return not_finite_; }
  bool empty() const { return count_ == 0; }

  /// At most 4 for each column, in the order in which they were added. All, if they are few.
  FRUGAL_INLINE std::vector<Point> points() const {
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

  Point first() const { return empty() ? Point{} : columns_.front().first.point; }
  Point last() const { return empty() ? Point{} : columns_.back().last.point; }
  Point lowest() const { return extreme<&Column::lowest>(true); }
  Point highest() const { return extreme<&Column::highest>(false); }

 private:
  struct Indexed {
    std::uint64_t index = 0;
    Point point{};
  };
  struct Column {
    Indexed first{}, lowest{}, highest{}, last{};
    bool empty = true;

    FRUGAL_INLINE void take(Indexed const& next) {
      if (empty) {
        first = lowest = highest = last = next;
        empty = false;
        return;
      }
      if (next.point.value < lowest.point.value) lowest = next;
      if (next.point.value > highest.point.value) highest = next;
      last = next;
    }
    FRUGAL_INLINE void take(Column const& next) {
      if (next.lowest.point.value < lowest.point.value) lowest = next.lowest;
      if (next.highest.point.value > highest.point.value) highest = next.highest;
      last = next.last;
    }
  };

  FRUGAL_INLINE void halve() {
    for (std::size_t i = 0; i < most_columns / 2; ++i) {
      Column pair = columns_[2 * i];
      pair.take(columns_[2 * i + 1]);
      columns_[i] = pair;
    }
    columns_.resize(most_columns / 2);
    width_ *= 2;
  }

  template <auto Member>
  Point extreme(bool low) const {
    Point best;
    bool any = false;
    for (Column const& column : columns_) {
      Point const& each = (column.*Member).point;
      if (!any || (low ? each.value < best.value : each.value > best.value)) best = each;
      any = true;
    }
    return best;
  }

  std::vector<Column> columns_;
  std::uint64_t width_ = 1;  ///< points of a column
  std::uint64_t count_ = 0;
  std::uint64_t not_finite_ = 0;
};

}  // namespace frugal::html
