// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/levers.hpp>
#include <frugal/report/html/page.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/report/html/run_cost.hpp>
#include <frugal/report/html/run_folder.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// The sections of a run's page, for several runs: a table with a row for each, in the order given.
// A section that no run has anything for is left out.
namespace frugal::html {

namespace parts {

template <class Has>
bool run_state(std::vector<RunFolder> const& runs, Has const& has) {
  return std::any_of(runs.begin(), runs.end(), has);
}

/// "$3.00 (+50%)", of a plan of $2.
inline std::string against(std::optional<double> planned, std::optional<double> actual, Unit unit) {
  if (!actual) return no_value;
  std::string text = value_text(*actual, unit);
  if (planned && *planned > 0) {
    text += " (" + std::string(*actual > *planned ? "+" : "") +
            share_text(*actual - *planned, *planned) + ")";
  }
  return text;
}

/// The cells of what was planned and what happened.
inline void add_plan(Page::Row& row, std::optional<double> planned, std::optional<double> actual,
                     Unit unit) {
  row.push_back(planned ? value_text(*planned, unit) : no_value);
  row.push_back(against(planned, actual, unit));
}

}  // namespace parts

inline void write_plans(Page& page, std::vector<RunFolder> const& runs) {
  if (!parts::run_state(runs,
                        [](RunFolder const& run) { return run.log.event("plan") != nullptr; }))
    return;
  bool const money = parts::run_state(runs, [](RunFolder const& run) {
    LogLine const* const plan = run.log.event("plan");
    return plan != nullptr && plan->number("dollars_planned").has_value();
  });
  std::vector<Page::Row> rows;
  for (RunFolder const& run : runs) {
    LogLine const* const plan = run.log.event("plan");
    auto const planned = [&](char const* name) {
      auto const value = plan == nullptr ? std::nullopt : plan->number(name);
      return value && *value >= 0 ? value : std::nullopt;
    };
    auto hours = planned("hours_planned");
    if (hours) *hours *= 3600;
    Page::Row row{Page::escaped(run.name)};
    parts::add_plan(row, planned("steps_planned"), run.log.steps, Unit::count);
    parts::add_plan(row, hours, paid_seconds(run.log), Unit::seconds);
    if (money) parts::add_plan(row, planned("dollars_planned"), dollars_of(run.log), Unit::dollars);
    rows.push_back(std::move(row));
  }
  std::vector<std::string> head{"run", "steps planned", "steps", "time planned", "time"};
  if (money) head.insert(head.end(), {"dollars planned", "dollars"});
  page.section("plan", "Plan and outcome");
  page.table("Plan and outcome", head, rows);
}

inline void write_all_interruptions(Page& page, std::vector<RunFolder> const& runs) {
  bool any = false;
  std::vector<Page::Row> rows;
  for (RunFolder const& run : runs) {
    auto const times = [&](char const* name) {
      auto const count = std::count_if(run.log.events.begin(), run.log.events.end(),
                                       [&](LogLine const& event) { return event.event == name; });
      any = any || count != 0;
      return value_text(static_cast<double>(count), Unit::count);
    };
    Lost const lost = lost_by(run.log);
    rows.push_back({Page::escaped(run.name), times("preempted"), times("resume"), times("rollback"),
                    times("checkpoint_failed"), time_text(lost.seconds),
                    parts::share_text(lost.seconds, lost.seconds + run.log.seconds),
                    lost.dollars ? money_text(*lost.dollars) : no_value});
  }
  if (!any) return;
  page.section("interruptions", "Interruptions");
  page.table("Interruptions",
             {"run", "preemptions", "resumes", "rollbacks", "failed checkpoints", "time lost",
              "of all", "dollars lost"},
             rows);
}

/// Writes the hot spots of each run's last profiled window.
inline void write_all_hot_spots(Page& page, std::vector<RunFolder> const& runs) {
  if (!parts::run_state(runs, [](RunFolder const& run) { return !run.windows.empty(); })) return;
  std::vector<Page::Row> rows;
  for (RunFolder const& run : runs) {
    Page::Row row{Page::escaped(run.name), no_value, no_value, no_value, no_value, no_value};
    if (!run.windows.empty()) {
      ProfileWindow const& last = run.windows.back();
      if (!last.bound.empty()) row[1] = Page::escaped(last.bound);
      auto const top =
          std::max_element(last.hot_spots.begin(), last.hot_spots.end(),
                           [](HotSpot const& a, HotSpot const& b) { return a.share < b.share; });
      if (top != last.hot_spots.end()) {
        row[2] = Page::escaped(top->name);
        row[3] = value_text(top->share, Unit::percent);
      }
      if (last.device_idle) row[4] = value_text(*last.device_idle, Unit::percent);
      row[5] = time_text(last.step_seconds);
    }
    rows.push_back(std::move(row));
  }
  page.section("hot-spots", "Hot spots");
  page.table("Hot spots",
             {"run", "bound by", "top operation", "share", "device idle", "step takes"}, rows, 3);
}

inline void write_all_duplicates(Page& page, std::vector<RunFolder> const& runs) {
  if (!parts::run_state(runs, [](RunFolder const& run) { return run.duplicates.has_value(); }))
    return;
  std::vector<Page::Row> rows;
  for (RunFolder const& run : runs) {
    Page::Row row{Page::escaped(run.name)};
    if (run.duplicates) {
      Curation const& found = *run.duplicates;
      auto const dollars = found.dollars_per_epoch();
      row.insert(row.end(), {detail::grouped(found.samples), detail::grouped(found.removed.size()),
                             detail::percent_of(found.removed.size(), found.samples),
                             detail::grouped(found.copies()),
                             value_text(static_cast<double>(found.removed_bytes()), Unit::bytes),
                             dollars ? money_text(*dollars) : no_value});
    } else {
      row.resize(7, no_value);
    }
    rows.push_back(std::move(row));
  }
  page.section("duplicates", "Duplicates");
  page.table(
      "Duplicates",
      {"run", "samples", "removed", "of all", "of these, copies", "bytes saved", "saved per epoch"},
      rows);
}

}  // namespace frugal::html
