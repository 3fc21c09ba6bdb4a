// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are a log that is read in bounded memory, the same whatever its pieces; and
// any text in it, in levers.json and in hot_spots.json reaches the page only escaped.
#include <frugal/base/utf8.hpp>
#include <frugal/error.hpp>
#include <frugal/report/html/curves.hpp>
#include <frugal/report/html/levers.hpp>
#include <frugal/report/html/page.hpp>
#include <frugal/report/html/run_folder.hpp>
#include <frugal/report/html/run_log.hpp>
#include <frugal/report/html/run_page.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "demand.hpp"

using frugal_fuzz::demand;

namespace {

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; ++at) ++found;
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  namespace html = frugal::html;
  std::string_view const bytes(reinterpret_cast<char const*>(data), size);
  html::RunLogReader whole, pieces;
  whole.feed(bytes);
  for (std::size_t at = 0; at < size; at += 3) pieces.feed(bytes.substr(at, 3));
  html::RunFolder run{
      .path = "run", .name = std::string(bytes.substr(0, 40)), .log = whole.finish()};
  html::RunLog const same = pieces.finish();
  demand(same.lines == run.log.lines && same.damaged == run.log.damaged &&
             same.read == run.log.read && same.series.size() == run.log.series.size() &&
             same.events.size() == run.log.events.size(),
         "a log is the same whatever its pieces");
  demand(run.log.read + run.log.damaged <= run.log.lines, "every line is counted once");
  try {
    run.levers = html::parse_levers(std::string(bytes), "levers.json");
  } catch (frugal::DataError const&) {
  }
  try {
    run.windows = html::parse_windows(std::string(bytes), "hot_spots.json");
  } catch (frugal::DataError const&) {
  }
  std::vector<html::RunFolder> runs;
  runs.push_back(std::move(run));
  html::Page page;
  page.figures(html::headline(runs.front()));
  html::write_curves(page, runs);
  html::write_plan(page, runs.front().log);
  if (runs.front().levers) html::write_waterfall(page, *runs.front().levers);
  html::write_interruptions(page, runs.front().log);
  html::write_profile(page, runs.front());
  html::write_facts(page, runs.front());
  html::write_events(page, runs.front().log);
  std::string const text = std::move(page).html(runs.front().name, "fuzz");
  // One script for the page, and one block of data for each chart.
  demand(count(text, "<script") == 1 + count(text, "<figure class=\"chart\""), "no other script");
  demand(count(text, "</script") == count(text, "<script"), "no script is ended by a text");
  demand(count(text, "<section") == count(text, "</section>"), "sections are closed");
  demand(frugal::detail::is_utf8(text), "a page is UTF-8");
  return 0;
}
