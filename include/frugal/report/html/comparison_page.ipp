// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/comparison_page.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/html/levers.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/report/html/run_page.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
// The sections of a run's page, for several runs: a table with a row for each, in the order given. A section that no
// run has anything for is left out.
namespace frugal::html {

FRUGAL_INLINE void write_runs(Page& page, std::vector<RunFolder> const& runs) {
  bool const money = std::any_of(runs.begin(), runs.end(), [](RunFolder const& run) {
    return dollars_of(run.log).has_value();
  });
  std::string metric;  // the first that every run validates
  for (auto const& [name, series] : runs.front().log.series) {
    bool const all = std::all_of(runs.begin(), runs.end(),
                                 [&key = name](RunFolder const& run) { return run.log.has(key); });
    bool const better = metric.empty() || metric == "validation/loss";
    if (name.starts_with("validation/") && all && better) metric = name;
  }
  Better const better =
      metric.empty() ? Better::unknown : better_of(runs.front().log, metric.substr(11));
  std::vector<std::string> head{"run", "steps", "time"};
  if (money) head.emplace_back("cost");
  if (!metric.empty()) {
    head.push_back((better == Better::unknown ? "last " : "best ") + metric.substr(11));
    head.insert(head.end(), {"at step", "after"});
  }
  head.insert(head.end(), {"lost", "ended"});
  std::vector<Row> rows;
  for (RunFolder const& run : runs) {
    Row row{run.name, value_text(run.log.steps, Unit::count), time_text(run.log.seconds)};
    if (money) row.push_back(value_text(dollars_of(run.log), Unit::dollars));
    if (!metric.empty()) {
      // A run that diverged before its first validation has no best one.
      if (Series const* const values = run.log.find(metric)) {
        Point const best = best_of(better, *values).point;
        row.insert(row.end(), {short_number(best.value), value_text(best.step, Unit::count),
                               time_text(best.seconds)});
      } else {
        row.insert(row.end(), 3, no_value);
      }
    }
    row.push_back(time_text(lost_by(run.log).seconds));
    LogLine const* const end = run.log.event("end");
    row.push_back(end == nullptr                    ? "no end in the log"
                  : end->text("stopped_by").empty() ? "by itself"
                                                    : "by " + end->text("stopped_by"));
    rows.push_back(std::move(row));
  }
  page.section("all", "Runs");
  page.table({"Runs", head, rows});
}

FRUGAL_INLINE void write_savings(Page& page, std::vector<RunFolder> const& runs) {
  for (RunFolder const& run : runs) {
    if (run.levers) return write_waterfall_section(page, *run.levers);
  }
  bool const money = std::all_of(runs.begin(), runs.end(), [](RunFolder const& run) {
    return dollars_of(run.log).has_value();
  });
  Levers levers{.title = {}, .unit = money ? "USD" : "hours"};
  for (RunFolder const& run : runs) {
    levers.steps.push_back(
        {.name = run.name,
         .value = money ? std::max(0.0, *dollars_of(run.log)) : run.log.seconds / 3600});
  }
  page.section("savings", money ? "Dollars from run to run" : "Time from run to run");
  page.note(
      "Each bar is the difference from the run before it. The runs may differ in what they reach: "
      "see the table.");
  write_waterfall(page, levers);
}

/// A section with a row for each run: its name, and what `cells` has of it. No section if no run has any.
FRUGAL_INLINE void write_rows(Page& page, std::vector<RunFolder> const& runs, std::string const& id,
                              std::string const& title, std::vector<std::string> const& head,
                              std::function<bool(RunFolder const&, Row&)> const& cells,
                              std::size_t texts = 1) {
  bool any = false;
  Table table{title, head, {}, texts};
  for (RunFolder const& run : runs) {
    Row& row = table.rows.emplace_back(Row{run.name});
    any = cells(run, row) || any;
    row.resize(head.size(), no_value);
  }
  if (!any) return;
  page.section(id, title);
  page.table(table);
}

FRUGAL_INLINE void write_plans(Page& page, std::vector<RunFolder> const& runs) {
  bool const money = std::any_of(runs.begin(), runs.end(), [](RunFolder const& run) {
    LogLine const* const plan = run.log.event("plan");
    return plan != nullptr && plan->number("dollars_planned").has_value();
  });
  std::vector<std::string> head{"run", "steps planned", "steps", "time planned", "time"};
  if (money) head.insert(head.end(), {"dollars planned", "dollars"});
  write_rows(page, runs, "plan", "Plan and outcome", head, [&](RunFolder const& run, Row& row) {
    LogLine const* const plan = run.log.event("plan");
    // What was planned, and what happened.
    auto const add = [&](char const* name, double factor, std::optional<double> actual, Unit unit) {
      auto planned = plan == nullptr ? std::nullopt : plan->number(name);
      if (planned && !(*planned >= 0)) planned.reset();
      if (planned) *planned *= factor;
      row.push_back(value_text(planned, unit));
      row.push_back(value_text(actual, unit) +
                    (planned && actual ? parts::change_text(*planned, *actual) : ""));
    };
    add("steps_planned", 1, run.log.steps, Unit::count);
    add("hours_planned", 3600, paid_seconds(run.log), Unit::seconds);
    if (money) add("dollars_planned", 1, dollars_of(run.log), Unit::dollars);
    return plan != nullptr;
  });
}

FRUGAL_INLINE void write_all_interruptions(Page& page, std::vector<RunFolder> const& runs) {
  std::vector<std::string> const head{"run",       "preemptions",        "resumes",
                                      "rollbacks", "failed checkpoints", "time lost",
                                      "of all",    "dollars lost"};
  write_rows(
      page, runs, "interruptions", "Interruptions", head, [](RunFolder const& run, Row& row) {
        bool any = false;
        for (char const* name : {"preempted", "resume", "rollback", "checkpoint_failed"}) {
          auto const count =
              std::count_if(run.log.events.begin(), run.log.events.end(),
                            [&](LogLine const& event) { return event.event == name; });
          any = any || count != 0;
          row.push_back(value_text(count, Unit::count));
        }
        Lost const lost = lost_by(run.log);
        row.insert(row.end(), {time_text(lost.seconds),
                               parts::share_text(lost.seconds, lost.seconds + run.log.seconds),
                               value_text(lost.dollars, Unit::dollars)});
        return any;
      });
}

FRUGAL_INLINE void write_all_hot_spots(Page& page, std::vector<RunFolder> const& runs) {
  std::vector<std::string> const head{"run",   "bound by",    "top operation",
                                      "share", "device idle", "step takes"};
  write_rows(
      page, runs, "hot-spots", "Hot spots", head,
      [](RunFolder const& run, Row& row) {
        if (run.windows.empty()) return false;
        ProfileWindow const& last = run.windows.back();
        auto const top =
            std::max_element(last.hot_spots.begin(), last.hot_spots.end(),
                             [](HotSpot const& a, HotSpot const& b) { return a.share < b.share; });
        bool const has = top != last.hot_spots.end();
        row.insert(row.end(),
                   {last.bound.empty() ? no_value : last.bound, has ? top->name : no_value,
                    has ? value_text(top->share, Unit::percent) : no_value,
                    value_text(last.device_idle, Unit::percent), time_text(last.step_seconds)});
        return true;
      },
      3);
}

FRUGAL_INLINE void write_all_duplicates(Page& page, std::vector<RunFolder> const& runs) {
  std::vector<std::string> const head{
      "run", "samples", "removed", "of all", "of these, copies", "bytes saved", "saved per epoch"};
  write_rows(page, runs, "duplicates", "Duplicates", head, [](RunFolder const& run, Row& row) {
    if (!run.duplicates) return false;
    Curation const& found = *run.duplicates;
    row.insert(row.end(),
               {detail::grouped(found.samples), detail::grouped(found.removed.size()),
                detail::percent_of(found.removed.size(), found.samples),
                detail::grouped(found.copies()), value_text(found.removed_bytes(), Unit::bytes),
                value_text(found.dollars_per_epoch(), Unit::dollars)});
    return true;
  });
}

}  // namespace frugal::html

namespace frugal {

FRUGAL_INLINE std::string comparison_report_html(
    std::vector<std::filesystem::path> const& folders) {
  if (folders.empty()) {
    throw SettingsError({.what = "there is no run to report on",
                         .where = "comparison_report_html",
                         .why = "the list of folders is empty",
                         .fix = "Give one run directory or more."});
  }
  std::vector<html::RunFolder> runs;
  std::vector<std::string> names, notes;
  for (auto const& folder : folders) {
    runs.push_back(html::read_run_folder(folder));
    names.push_back(runs.back().name);
  }
  for (html::RunFolder& run : runs) {
    // Runs of one folder name are distinguished by their paths.
    if (std::count(names.begin(), names.end(), run.name) > 1) run.name = run.path.string();
    for (std::string const& note : run.notes) notes.push_back(run.name + ": " + note);
  }
  html::Page page;
  html::write_runs(page, runs);
  html::write_savings(page, runs);
  html::write_curves(page, runs);
  html::write_plans(page, runs);
  html::write_all_interruptions(page, runs);
  html::write_all_hot_spots(page, runs);
  html::write_all_duplicates(page, runs);
  html::write_notes(page, notes);
  return std::move(page).html("Comparison of " + std::to_string(runs.size()) + " runs",
                              "Report of several training runs");
}

}  // namespace frugal
