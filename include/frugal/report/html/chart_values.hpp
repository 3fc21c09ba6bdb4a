// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/chart.hpp>

#include <string>

namespace frugal::html {

/// The values of a chart, next to its picture: as a table for readers, and as JSON for the script.
class ChartValues {
 public:
  ChartValues(std::string& out, Chart const& chart) : out_(out), chart_(chart) {}

  /// At most 24 rows for each line, spread evenly, with its last point. Points of all lines that
  /// are at one place of the first axis share a row.
  void table() const;

  /// The values for the script, as JSON without "<": no text in it can end the element.
  void json() const;

 private:
  std::string& out_;
  Chart const& chart_;
};

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/chart_values.ipp>
#endif
