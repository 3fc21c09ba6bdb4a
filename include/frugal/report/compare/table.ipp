// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/compare/table.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::string figure_text(double value) {
  double const size = std::abs(value);
  int digits = 0;
  if (size > 0 && size < 1000) {
    // 0.000123 needs seven digits after the point to show three.
    digits = std::min(10, static_cast<int>(std::ceil(3 - std::log10(size))));
  }
  return fixed(value, std::max(0, digits));
}

FRUGAL_INLINE std::string spread_text(std::optional<Spread> const& spread, double unit) {
  if (!spread) return "-";
  std::string const median = figure_text(spread->median / unit);
  if (spread->count == 1 || spread->least == spread->most) return median;
  return median + " (" + figure_text(spread->least / unit) + " to " +
         figure_text(spread->most / unit) + ")";
}

FRUGAL_INLINE std::vector<std::string> metric_names_of(ComparisonResults const& of) {
  std::vector<std::string> names;
  for (ComparedRecipe const& row : of.rows) {
    for (Trial const& trial : row.trials) {
      for (auto const& [name, value] : trial.metrics) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
  }
  return names;
}

FRUGAL_INLINE std::string ComparisonTable::text() const {
  std::vector<std::vector<std::string>> rows{head()};
  for (ComparedRecipe const& row : of_.rows) {
    if (!row.trials.empty()) rows.push_back(cells(row));
  }
  std::string out = watch::columns(
      rows, std::vector<std::size_t>(rows.front().size(), std::numeric_limits<std::size_t>::max()));
  return out + notes();
}

FRUGAL_INLINE std::vector<std::string> ComparisonTable::head() const {
  std::vector<std::string> cells{"recipe", "ms/step", "of baseline", "peak MiB"};
  if (of_.target.given()) {
    cells.insert(cells.end(), {"samples to " + of_.target.text(), "seconds to it", "of baseline"});
  } else {
    cells.insert(cells.end(), {"seconds", "of baseline"});
  }
  if (of_.dollars_per_hour) cells.emplace_back("USD");
  for (std::string const& name : metric_names_of(of_)) cells.push_back(name);
  return cells;
}

FRUGAL_INLINE std::vector<std::string> ComparisonTable::cells(ComparedRecipe const& row) const {
  bool const first = &row == &of_.rows.front();
  auto const ratio = [&](std::optional<Spread> const& spread) {
    return first ? std::string("1") : spread_text(spread);
  };
  std::vector<std::string> cells{row.name, spread_text(row.step_seconds(), 1e-3),
                                 ratio(of_.step_ratio(row)),
                                 spread_text(row.peak_bytes(), 1024.0 * 1024.0)};
  if (of_.target.given()) {
    bool const all = row.reached() == row.trials.size();
    std::string const missed =
        "reached in " + std::to_string(row.reached()) + " of " + std::to_string(row.trials.size());
    cells.push_back(all ? spread_text(row.samples_to_target()) : missed);
  }
  cells.push_back(spread_text(of_.paid_seconds(row)));
  cells.push_back(ratio(of_.paid_ratio(row)));
  if (of_.dollars_per_hour) cells.push_back(spread_text(of_.dollars(row)));
  for (std::string const& name : metric_names_of(of_))
    cells.push_back(spread_text(row.metric(name)));
  return cells;
}

FRUGAL_INLINE std::string ComparisonTable::notes() const {
  std::string out;
  if (of_.repeats > 1) {
    out += "\nMedian (least to greatest) of " + std::to_string(of_.repeats) +
           " repeats. Ratios are of runs of the same repeat; where their range includes 1, no "
           "difference is seen.\n";
  } else {
    out += "\nOne run each: no spread is known, so a difference may be chance.\n";
  }
  for (std::size_t i = 1; i < of_.rows.size(); ++i) {
    if (of_.rows[i].same_weights(of_.rows[0])) {
      out += "'" + of_.rows[i].name + "' ends in the same weights as the baseline, to the bit.\n";
    }
  }
  for (ComparedRecipe const& row : of_.rows) {
    if (row.failed()) out += "'" + row.name + "' failed: " + row.error + '\n';
  }
  out += losses_note() + warnings();
  for (ComparisonResults::Dropped const& each : of_.dropped) {
    out += "'" + each.name + "' is not possible. " + each.fault + '\n';
  }
  if (of_.interrupted) out += "The comparison was interrupted: later runs are missing.\n";
  return out;
}

FRUGAL_INLINE std::string ComparisonTable::losses_note() const {
  std::string const* first = nullptr;
  for (ComparedRecipe const& row : of_.rows) {
    for (Trial const& trial : row.trials) {
      if (first == nullptr) first = &trial.objective;
      if (trial.objective == *first) continue;
      return "The objectives of '" + row.name +
             "' and of the rows above it have other members: "
             "their losses are not comparable, compare metrics.\n";
    }
  }
  return {};
}

FRUGAL_INLINE std::string ComparisonTable::warnings() const {
  std::string out;
  for (ComparedRecipe const& row : of_.rows) {
    std::vector<std::string> told;
    for (Trial const& trial : row.trials) {
      for (std::string const& each : trial.warnings) {
        if (std::find(told.begin(), told.end(), each) != told.end()) continue;
        told.push_back(each);
        out += "Warning of '" + row.name + "': " + each + '\n';
      }
    }
  }
  return out;
}

}  // namespace frugal::detail
