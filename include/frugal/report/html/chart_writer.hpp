// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/chart.hpp>

#include <cstddef>
#include <string>

namespace frugal::html {

/// Draws one chart as a figure: a legend, one picture per axis, a slider for keyboard and touch
/// that the page's script fills, and a table of its values.
class ChartWriter {
 public:
  ChartWriter(std::string& out, Chart const& chart, std::size_t number)
      : out_(out), chart_(chart), id_("c" + std::to_string(number)) {}

  void write() const;

 private:
  void legend() const;

  std::string& out_;
  Chart const& chart_;
  std::string id_;
};

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
#include <frugal/report/html/chart_writer.ipp>
#endif
