// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/error.hpp>
#include <frugal/report/html/best_value.hpp>
#include <frugal/report/html/comparison_sections.hpp>
#include <frugal/report/html/curves.hpp>
#include <frugal/report/html/levers.hpp>
#include <frugal/report/html/page.hpp>
#include <frugal/report/html/run_cost.hpp>
#include <frugal/report/html/run_folder.hpp>
#include <frugal/report/html/run_page.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

namespace html {

/// Runs of one folder name are distinguished by as much of their paths as that takes.
inline void name_apart(std::vector<RunFolder>& runs) {
  std::vector<std::string> const names = [&] {
    std::vector<std::string> all;
    for (RunFolder const& run : runs) all.push_back(run.name);
    return all;
  }();
  for (RunFolder& run : runs) {
    if (std::count(names.begin(), names.end(), run.name) > 1) run.name = run.path.string();
  }
}

/// One row per run, in the order given.
inline void write_runs(Page& page, std::vector<RunFolder> const& runs) {
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
    head.emplace_back("at step");
    head.emplace_back("after");
  }
  head.emplace_back("lost");
  head.emplace_back("ended");
  std::vector<Page::Row> rows;
  for (RunFolder const& run : runs) {
    Page::Row row{Page::escaped(run.name), value_text(run.log.steps, Unit::count),
                  time_text(run.log.seconds)};
    if (money) {
      auto const dollars = dollars_of(run.log);
      row.push_back(dollars ? money_text(*dollars) : no_value);
    }
    if (!metric.empty()) {
      // A run that diverged before its first validation has no best one.
      Series const* const values = run.log.find(metric);
      Point const best = values == nullptr ? Point{} : best_of(better, *values).point;
      bool const any = values != nullptr;
      row.push_back(any ? short_number(best.value) : no_value);
      row.push_back(any ? value_text(best.step, Unit::count) : no_value);
      row.push_back(any ? time_text(best.seconds) : no_value);
    }
    row.push_back(time_text(lost_by(run.log).seconds));
    LogLine const* const end = run.log.event("end");
    row.push_back(end == nullptr ? "no end in the log"
                  : end->text("stopped_by").empty()
                      ? "by itself"
                      : Page::escaped("by " + end->text("stopped_by")));
    rows.push_back(std::move(row));
  }
  page.section("all", "Runs");
  page.table("Runs", head, rows);
}

/// The waterfall of levers.json, or the runs' own costs in the order given.
inline void write_savings(Page& page, std::vector<RunFolder> const& runs) {
  for (RunFolder const& run : runs) {
    if (!run.levers) continue;
    page.section("savings",
                 run.levers->title.empty() ? "What each lever saved" : run.levers->title);
    return write_waterfall(page, *run.levers);
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
  page.paragraph(
      "Each bar is the difference from the run before it. The runs may differ in what they reach: "
      "see the table.",
      "note");
  write_waterfall(page, levers);
}

}  // namespace html

/// The report on several runs: a table, their curves in the same charts, and what changed from each
/// run to the next, in the order given.
///
/// Errors  SettingsError without a folder; DataError for one without a log that can be read.
inline std::string comparison_report_html(std::vector<std::filesystem::path> const& folders) {
  if (folders.empty()) {
    throw SettingsError({.what = "there is no run to report on",
                         .where = "comparison_report_html",
                         .why = "the list of folders is empty",
                         .fix = "Give one run folder or more."});
  }
  std::vector<html::RunFolder> runs;
  for (auto const& folder : folders) runs.push_back(html::read_run_folder(folder));
  html::name_apart(runs);
  html::Page page;
  html::write_runs(page, runs);
  html::write_savings(page, runs);
  html::write_curves(page, runs);
  html::write_plans(page, runs);
  html::write_all_interruptions(page, runs);
  html::write_all_hot_spots(page, runs);
  html::write_all_duplicates(page, runs);
  std::vector<std::string> notes;
  for (html::RunFolder const& run : runs) {
    for (std::string const& note : run.notes) notes.push_back(run.name + ": " + note);
  }
  html::write_notes(page, notes);
  return std::move(page).html("Comparison of " + std::to_string(runs.size()) + " runs",
                              "Report of several training runs");
}

/// Writes the report, replacing a file of that name at once. StoreError if that fails.
inline void write_comparison_report(std::filesystem::path const& file,
                                    std::vector<std::filesystem::path> const& folders) {
  detail::write_whole_file(file, comparison_report_html(folders), detail::Durable::yes);
}

}  // namespace frugal
