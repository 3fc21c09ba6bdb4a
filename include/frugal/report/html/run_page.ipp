// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/run_page.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/html/best_value.hpp>
#include <frugal/report/html/curves.hpp>
#include <frugal/report/html/levers.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/report/html/run_cost.hpp>
#include <frugal/report/html/run_sections.hpp>

#include <algorithm>
#include <string_view>

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
