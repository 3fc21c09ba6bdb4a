// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are a log that is read in bounded memory, the same whatever its pieces; and
// any text in it, in levers.json and in hot_spots.json reaches the page only escaped.
#include <frugal/base/utf8.hpp>
#include <frugal/error.hpp>
#include <frugal/report/html/levers.hpp>
#include <frugal/report/html/run_folder.hpp>
#include <frugal/report/html/run_log.hpp>
#include <frugal/report/html/run_page.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

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
  std::string const text = html::run_page(run);
  // The page's script and its data.
  demand(count(text, "<script") == 2, "no other script");
  demand(count(text, "</script") == 2, "no script is ended by a text");
  demand(frugal::detail::is_utf8(text), "a page is UTF-8");
  return 0;
}
