// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/html_page.hpp>
#include <frugal/report/html/chart.hpp>
#include <frugal/report/html/run_folder.hpp>

#include <string>
#include <utility>
#include <vector>

namespace frugal::html {

/// What a chart shows of each run, and how.
struct Curve {
  enum class Height : unsigned char { fitted, from_zero, may_be_logarithmic };

  std::string title;
  Unit unit = Unit::plain;
  Height height = Height::fitted;
  /// Name in the log, name in the chart.
  std::vector<std::pair<std::string, std::string>> series{};
  std::string note{};
};

std::string capitalised(std::string text);

/// The curves of a log in the order of a page: loss, metrics, learning rate, speed, memory, money,
/// energy, and everything else that was logged.
std::vector<Curve> curves_of(std::vector<RunFolder> const& runs);

/// The section of all curves: one line per series for one run, one per run for several, of which
/// each chart then shows the series that compares best (validation before training).
void write_curves(Page& page, std::vector<RunFolder> const& runs);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/curves.ipp>
#endif
