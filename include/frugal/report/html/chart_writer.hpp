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

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/chart_writer.ipp>
#endif
