// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

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
  void add(Point const& point);

  std::uint64_t count() const { return count_; }  ///< of finite values
  std::uint64_t not_finite() const { return not_finite_; }
  bool empty() const { return count_ == 0; }

  /// At most 4 for each column, in the order in which they were added. All, if they are few.
  std::vector<Point> points() const;

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

    void take(Indexed const& next);
    void take(Column const& next);
  };

  void halve();

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

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/series.ipp>
#endif
