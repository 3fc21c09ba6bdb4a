// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/results/page_tables.hpp>

#include "support/search_synthetic.hpp"

#include <cstddef>
#include <string>

namespace frugal_test::search_page_tables {

namespace html = frugal::html;
using frugal::SearchResults;

std::size_t count(std::string const& text, std::string const& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
  return found;
}
bool has(std::string const& text, std::string const& part) { return count(text, part) > 0; }

std::string written(SearchResults const& of, void (*write)(html::Page&, SearchResults const&)) {
  html::Page page;
  write(page, of);
  return page.text();
}

TEST_CASE("all trials have a row, the best first, and the winner has a mark") {
  SearchResults const of = synthetic::search(64);
  std::string const text = written(of, html::write_trials);
  CHECK(count(text, "<th scope=\"row\">") == 64);
  CHECK(has(text, "<th scope=\"row\"><span class=\"one\">" + std::to_string(*of.winner) +
                      " <b>winner</b></span></th>"));
  CHECK(count(text, "<b>winner</b>") == 1);
  CHECK(count(text, "<td>failed</td>") == 7);
  for (char const* head : {"accuracy", "lr", "width", "momentum", "norm", "samples", "cost"}) {
    CHECK(has(text, ">" + std::string(head) + "</th>"));
  }
  SearchResults const two = synthetic::search(64, 2);
  CHECK(has(written(two, html::write_trials), "<b>Pareto front</b>"));
}

TEST_CASE("of more than a thousand trials the best thousand have a row, and the page says it") {
  std::string const text = written(synthetic::search(1100), html::write_trials);
  CHECK(count(text, "<th scope=\"row\">") == 1000);
  CHECK(has(text, "The best 1000 of 1100 trials."));
}

TEST_CASE("finalists have the mean of fresh seeds and the flattery") {
  SearchResults of = synthetic::search(64);
  std::string const text = written(of, html::write_finalists);
  CHECK(count(text, "<th scope=\"row\">") == 4);
  CHECK(has(text, "0.9261 \xc2\xb1 0.013</td><td>-0.032</td><td>3</td>"));
  CHECK(has(text, ">flattered by</th>"));
  of.history.trials.back().state = frugal::TrialState::failed;
  CHECK(has(written(of, html::write_finalists), "3 (1 without a value)"));
  CHECK(written(synthetic::search(9, 1, true), html::write_finalists).empty());
}

TEST_CASE("rungs have their cost, and repeats theirs") {
  SearchResults of = synthetic::search(64);
  std::string const text = written(of, html::write_rungs);
  CHECK(count(text, "<th scope=\"row\">") == 4);
  CHECK(has(text, "<th scope=\"row\">1</th><td>250</td><td>57</td><td>16</td>"));
  CHECK(has(text, "<th scope=\"row\">other seeds</th>"));
  CHECK(!has(text, "bracket"));
  of.rungs.push_back({4000});
  CHECK(has(written(of, html::write_rungs), ">bracket</th>"));
}

TEST_CASE("failed trials and dropped recipes come with their reasons, escaped") {
  SearchResults of = synthetic::search(64);
  for (auto& trial : of.history.trials) {
    if (!trial.outcome.empty()) trial.outcome = "<script>";
  }
  std::string const failed = written(of, html::write_failed);
  CHECK(count(failed, "<th scope=\"row\">") == 7);
  CHECK(count(failed, "&lt;script&gt;") == 7);
  CHECK(!has(failed, "<script>"));
  CHECK(written(of, html::write_dropped).empty());
  of.dropped = {{"Muon <b>", "Muon does not take FP16 & more."}};
  std::string const dropped = written(of, html::write_dropped);
  CHECK(has(dropped, "Muon &lt;b&gt;"));
  CHECK(has(dropped, "Muon does not take FP16 &amp; more."));
  for (auto& trial : of.history.trials) trial.outcome.clear();
  CHECK(has(written(of, html::write_failed), "no reason is known"));
}

TEST_CASE("without a price there is no column for it") {
  SearchResults of = synthetic::search(16);
  of.dollars_per_hour.reset();
  CHECK(!has(written(of, html::write_trials), "$"));
  CHECK(!has(written(of, html::write_rungs), "cost</th>"));
}

}  // namespace frugal_test::search_page_tables
