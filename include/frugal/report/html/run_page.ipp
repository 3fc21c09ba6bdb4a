// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/run_page.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/html/best_value.hpp>
#include <frugal/report/html/chart.hpp>
#include <frugal/report/html/chart_writer.hpp>
#include <frugal/report/html/curves.hpp>
#include <frugal/report/html/levers.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/report/html/run_cost.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::html {

FRUGAL_INLINE std::vector<std::pair<std::string, std::string>> headline(RunFolder const& run) {
  RunLog const& log = run.log;
  std::vector<std::pair<std::string, std::string>> figures;
  figures.emplace_back("steps", with_share(value_text(log.steps, Unit::count),
                                           value_text(log.epochs, Unit::count) +
                                               (log.epochs == 1 ? " epoch" : " epochs")));
  figures.emplace_back("training time", time_text(log.seconds));
  if (auto const dollars = dollars_of(log)) figures.emplace_back("cost", money_text(*dollars));
  if (Series const* const energy = log.find("kilowatt_hours")) {
    figures.emplace_back("energy", short_number(energy->last().value) + " kWh");
  }
  if (Series const* const loss = log.find("epoch/loss")) {
    figures.emplace_back("training loss, last epoch", short_number(loss->last().value));
  } else if (Series const* const some = log.find("loss")) {
    figures.emplace_back("training loss, last", short_number(some->last().value));
  }
  std::size_t shown = 0;
  for (auto const& [name, series] : log.series) {
    if (!name.starts_with("validation/") || series.empty() || ++shown > 2) continue;
    std::string const metric = name.substr(11);
    auto const [which, at] = best_of(better_of(log, metric), series);
    figures.emplace_back(
        which + (" validation " + metric),
        with_share(short_number(at.value), "at step " + value_text(at.step, Unit::count)));
  }
  if (Lost const lost = lost_by(log); lost.times != 0) {
    figures.emplace_back("lost to interruptions",
                         with_share(time_text(lost.seconds),
                                    lost.dollars ? money_text(*lost.dollars)
                                                 : std::to_string(lost.times) + "\xc3\x97"));
  }
  return figures;
}

FRUGAL_INLINE void write_notes(Page& page, std::vector<std::string> const& notes) {
  if (notes.empty()) return;
  page.section("notes", "Notes on the files");
  page.raw("<ul>\n");
  for (std::string const& note : notes) page.raw("<li>" + Page::escaped(note) + "</li>\n");
  page.raw("</ul>\n");
}

}  // namespace frugal::html

namespace frugal {

FRUGAL_INLINE std::string run_report_html(std::filesystem::path const& folder) {
  std::vector<html::RunFolder> const runs{html::read_run_folder(folder)};
  html::RunFolder const& run = runs.front();
  html::Page page;
  page.figures(html::headline(run));
  html::write_curves(page, runs);
  html::write_plan(page, run.log);
  if (run.levers) {
    page.section("savings",
                 run.levers->title.empty() ? "What each lever saved" : run.levers->title);
    html::write_waterfall(page, *run.levers);
  }
  html::write_interruptions(page, run.log);
  html::write_profile(page, run);
  html::write_duplicates(page, run);
  html::write_facts(page, run);
  html::write_events(page, run.log);
  html::write_notes(page, run.notes);
  return std::move(page).html(run.name, "Report of a training run");
}

}  // namespace frugal

namespace frugal::html {

FRUGAL_INLINE void write_plan(Page& page, RunLog const& log) {
  LogLine const* const plan = log.event("plan");
  if (plan == nullptr) return;
  struct Row {
    char const* name;
    std::optional<double> planned, actual;
    Unit unit;
  };
  std::vector<Row> rows{
      {"Steps", plan->number("steps_planned"), log.steps, Unit::count},
      {"Time", plan->number("hours_planned"), paid_seconds(log) / 3600, Unit::seconds},
      {"Dollars", plan->number("dollars_planned"), dollars_of(log), Unit::dollars}};
  page.section("plan", "Plan and outcome");
  page.raw("<div class=\"card\"><ol class=\"bars\">\n");
  for (Row& row : rows) {
    if (!row.planned || !row.actual || !(*row.planned >= 0)) continue;
    if (row.unit == Unit::seconds) *row.planned *= 3600, *row.actual *= 3600;
    double const most = std::max({*row.planned, *row.actual, 1e-300});
    std::string const change =
        *row.planned > 0 ? " (" + std::string(*row.actual > *row.planned ? "+" : "") +
                               parts::share_text(*row.actual - *row.planned, *row.planned) + ")"
                         : "";
    page.raw("<li><div class=\"row\"><span>" + std::string(row.name) + "</span><b>" +
             value_text(*row.actual, row.unit) + change + "</b></div>" +
             parts::bar(0, *row.actual / most, "total") +
             "<div class=\"row note\"><span>planned at "
             "step " +
             value_text(plan->step, Unit::count) + "</span><span>" +
             value_text(*row.planned, row.unit) + "</span></div>" +
             parts::bar(0, *row.planned / most, "planned") + "</li>\n");
  }
  page.raw("</ol></div>\n");
}

FRUGAL_INLINE void write_interruptions(Page& page, RunLog const& log) {
  std::vector<Page::Row> rows;
  auto const rate = dollars_per_second(log);
  for (LogLine const& event : log.events) {
    bool const resume = event.event == "resume";
    if (!resume && event.event != "preempted" && event.event != "rollback" &&
        event.event != "checkpoint_failed") {
      continue;
    }
    double const nan = std::numeric_limits<double>::quiet_NaN();
    double const lost = resume ? event.number("seconds_lost").value_or(nan) : nan;
    std::string detail;
    for (char const* name : {"from", "by", "error"}) {
      if (detail.empty()) detail = event.text(name);
    }
    if (event.event == "rollback") {
      detail = "from step " + value_text(event.number("from_step").value_or(nan), Unit::count);
    }
    rows.push_back(
        {Page::escaped(event.event), value_text(event.step, Unit::count), time_text(event.seconds),
         value_text(resume ? event.number("steps_repeated").value_or(nan) : nan, Unit::count),
         time_text(lost), money_text(rate ? *rate * lost : nan),
         Page::escaped(detail::beginning(detail, 200))});
    if (rows.size() == 200) break;
  }
  if (rows.empty()) return;
  page.section("interruptions", "Interruptions");
  Lost const lost = lost_by(log);
  if (lost.times != 0) {
    std::string text = std::to_string(lost.times) +
                       (lost.times == 1 ? " resume repeated " : " resumes repeated ") +
                       time_text(lost.seconds) + " of training, " +
                       parts::share_text(lost.seconds, lost.seconds + log.seconds) + " of all";
    if (lost.dollars) text += ", for " + money_text(*lost.dollars);
    page.paragraph(text + ".");
  }
  page.table("Interruptions",
             {"event", "step", "at", "steps repeated", "time lost", "dollars", "detail"}, rows);
}

FRUGAL_INLINE void write_profile(Page& page, RunFolder const& run) {
  if (run.windows.empty()) return;
  page.section("hot-spots", "Hot spots");
  ProfileWindow const& last = run.windows.back();
  std::string text =
      "Profiled at step " + value_text(last.step, Unit::count) + " for " + time_text(last.seconds);
  if (last.device_idle)
    text += "; the device was idle " + value_text(*last.device_idle, Unit::percent);
  if (!last.bound.empty()) text += "; bound by " + last.bound;
  page.paragraph(text + ".");
  if (!last.advice.empty()) page.paragraph(last.advice);
  std::vector<Page::Row> rows;
  for (HotSpot const& spot : last.hot_spots) {
    if (rows.size() == 15) break;
    rows.push_back(
        {Page::escaped(spot.name), value_text(spot.share, Unit::percent),
         time_text(spot.microseconds * 1e-6),
         spot.calls == 0 ? no_value : value_text(static_cast<double>(spot.calls), Unit::count)});
  }
  if (!rows.empty()) page.table("Hot spots", {"operation", "share", "time", "calls"}, rows);
  if (!last.memory.empty()) {
    Chart const chart{.title = "Memory in the window",
                      .unit = Unit::bytes,
                      .lines = {{.name = "memory", .points = last.memory.points()}},
                      .axes = {Axis::seconds},
                      .from_zero = true};
    page.raw("<div class=\"charts fixed\">\n");
    ChartWriter(page.text(), chart, 1000).write();
    page.raw("</div>\n");
  }
  if (run.windows.size() < 2) return;
  rows.clear();
  for (ProfileWindow const& window : run.windows) {
    if (rows.size() == 200) break;
    rows.push_back({value_text(window.step, Unit::count), Page::escaped(window.bound),
                    window.device_idle ? value_text(*window.device_idle, Unit::percent) : no_value,
                    time_text(window.step_seconds), time_text(window.overhead_seconds),
                    Page::escaped(window.trace)});
  }
  page.table("Profiled windows",
             {"step", "bound by", "device idle", "step takes", "overhead", "trace"}, rows, 2);
}

FRUGAL_INLINE void write_duplicates(Page& page, RunFolder const& run) {
  if (!run.duplicates) return;
  Curation const& found = *run.duplicates;
  page.section("duplicates", "Duplicates");
  if (!found.method.empty()) page.paragraph(found.method + ".");
  auto const count = [](std::uint64_t number) { return detail::grouped(number); };
  std::vector<std::pair<std::string, std::string>> figures{
      {"samples", count(found.samples)},
      {"removed", count(found.removed.size()) + " <small>" +
                      detail::percent_of(found.removed.size(), found.samples) + "</small>"},
      {"of these, copies", count(found.copies())},
      {"bytes saved", value_text(static_cast<double>(found.removed_bytes()), Unit::bytes)}};
  if (auto const dollars = found.dollars_per_epoch()) {
    figures.emplace_back("saved per epoch", money_text(*dollars));
  }
  page.figures(figures);
}

FRUGAL_INLINE void write_events(Page& page, RunLog const& log) {
  std::vector<Page::Row> rows;
  for (LogLine const& event : log.events) {
    std::string says;
    for (LogLine::Field const& field : event.fields) {
      if (field.name == "epoch" || field.name == "samples") continue;
      says += (says.empty() ? "" : ", ") + field.name + " " +
              (field.text ? detail::beginning(*field.text, 200) : short_number(field.number));
    }
    rows.push_back(
        {Page::escaped(event.event), value_text(event.step, Unit::count), time_text(event.seconds),
         "<span class=\"says\">" + Page::escaped(detail::beginning(says, 500)) + "</span>"});
  }
  if (rows.empty()) return;
  page.section("events", "Events");
  page.raw("<details><summary>" + detail::grouped(rows.size()) + " events of the log</summary>\n");
  page.table("Events", {"event", "step", "at", "says"}, rows);
  page.raw("</details>\n");
}

FRUGAL_INLINE void write_facts(Page& page, RunFolder const& run) {
  RunLog const& log = run.log;
  std::vector<Page::Row> rows;
  auto const add = [&](char const* name, std::string const& value) {
    if (!value.empty())
      rows.push_back({name, "<span class=\"says\">" + Page::escaped(value) + "</span>"});
  };
  add("Run", run.name);
  LogLine const* const recipe = log.event("recipe");
  LogLine const* const price = log.event("price");
  LogLine const* const end = log.event("end");
  if (recipe != nullptr) add("Recipe", recipe->text("recipe"));
  std::string device = recipe == nullptr ? "" : recipe->text("device");
  if (price != nullptr && !price->text("device").empty()) {
    device += (device.empty() ? "" : ", ") + price->text("device");
  }
  add("Device", device);
  if (price != nullptr) {
    if (auto const hour = price->number("per_hour")) {
      std::string const currency = price->text("currency");
      std::string text = money_text(*hour, currency.empty() ? "USD" : currency) + " per hour";
      if (auto const devices = price->number("devices")) {
        text += ", " + value_text(*devices, Unit::count) + (*devices == 1 ? " device" : " devices");
      }
      if (!price->text("source").empty()) text += " (" + price->text("source") + ")";
      add("Price", text);
    } else {
      add("Price", "unknown");
    }
  }
  if (LogLine const* const begin = log.event("begin")) {
    if (auto const count = begin->number("parameters"))
      add("Parameters", value_text(*count, Unit::count));
    if (LogLine::Field const* const seed = begin->find("seed");
        seed != nullptr && seed->number >= 0) {
      add("Seed", seed->digits.empty() ? detail::fixed(seed->number, 0) : seed->digits);
    }
  }
  add("Samples seen", value_text(log.samples, Unit::count));
  if (end != nullptr) {
    add("Ended",
        end->text("stopped_by").empty() ? "after its last step" : "by " + end->text("stopped_by"));
  } else if (LogLine const* const left = log.event("preempted")) {
    add("Ended", "not yet: preempted by " + left->text("by"));
  } else {
    add("Ended", "the log has no end: the run goes on, or was killed");
  }
  page.section("facts", "The run");
  page.table("The run", {"fact", "value"}, rows, 2);
}

}  // namespace frugal::html
