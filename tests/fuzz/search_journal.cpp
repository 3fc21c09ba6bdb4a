// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any lines are the journal of a search, or a typed error; whatever they say, schedules and samplers decide, and
// texts reach the table and the page only escaped.
#include <frugal/base/utf8.hpp>
#include <frugal/error.hpp>
#include <frugal/search/journal_records.hpp>
#include <frugal/search/results/page.hpp>
#include <frugal/search/results/table.hpp>
#include <frugal/search/sampler/tpe.hpp>
#include <frugal/search/schedule/median_stop.hpp>
#include <frugal/search/schedule/successive_halving.hpp>
#include <frugal/search/trials/finalists.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demand.hpp"

using frugal_fuzz::demand;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace frugal;
  std::string_view text(reinterpret_cast<char const*>(data), size);
  SearchDomain const domain{
      .recipes = {"a", "b"},
      .settings = {{.name = "lr", .values = LogUniform{1e-3, 1}, .recipes = {}},
                   {.name = "act", .values = Choice{{"relu", "gelu"}}, .recipes = {1}}}};
  std::vector<SearchObjective> const objectives{{}};
  detail::SearchIdentity const identity{{"seed", "1"}};
  detail::JournalReader reader("journal.log", domain, objectives, identity);
  try {
    for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      reader.apply(text.substr(0, end));
    }
  } catch (FormatError const&) {
    return 0;
  } catch (SettingsError const&) {
    return 0;
  }
  SearchHistory const& history = reader.history();
  for (SearchTrial const& each : history.trials) {
    demand(is_candidate_of(domain, each.candidate), "a trial that is read is one of the space");
    if (each.bracket != 0 || each.rungs.size() > 4 || each.opened > 4) return 0;
  }
  SearchLimits const limits{.horizon = 27};
  auto const halving = SuccessiveHalving<>{.trials = 9, .least = 1}.bind(limits);
  static_cast<void>(halving->next(history));
  static_cast<void>(Asha<>{.trials = 9, .least = 1}.bind(limits)->next(history));
  static_cast<void>(MedianStop{.trials = 9, .interval = 7}.bind(limits)->next(history));
  demand(is_candidate_of(domain, Tpe{.startup = 1}.suggest(domain, history, 50, 1)),
         "a suggestion is one of the space");
  SearchResults results{.domain = domain, .history = history, .objectives = objectives};
  results.rungs = halving->rungs();
  results.winner = winner_of(history);
  try {
    std::string const page = search_page(results, "fuzz");
    demand(detail::is_utf8(page), "a page is UTF-8");
    static_cast<void>(search_table(results));
  } catch (SettingsError const&) {
  }
  return 0;
}
