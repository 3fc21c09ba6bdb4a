// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/results/page.hpp>

#include "support/search_synthetic.hpp"

#include <unistd.h>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace frugal_test::search_page {

using frugal::search_page;
using frugal::SearchResults;
using frugal::TrialState;

std::size_t count(std::string const& text, std::string const& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
  return found;
}
bool has(std::string const& text, std::string const& part) { return count(text, part) > 0; }

/// The ids of the sections, in their order.
std::vector<std::string> sections(std::string const& page) {
  std::vector<std::string> all;
  std::string const begin = "<section id=\"";
  for (std::size_t at = 0; (at = page.find(begin, at)) != page.npos;) {
    at += begin.size();
    all.push_back(page.substr(at, page.find('"', at) - at));
  }
  return all;
}

void check_markup(std::string const& page) {
  for (char const* tag : {"section", "figure", "svg", "table", "div", "details", "ul", "ol", "pre",
                          "p", "desc", "text"}) {
    std::string const name = tag;
    CAPTURE(name);
    CHECK(count(page, "<" + name + " ") + count(page, "<" + name + ">") ==
          count(page, "</" + name + ">"));
  }
  std::set<std::string> ids;
  for (std::size_t at = 0; (at = page.find(" id=\"", at)) != page.npos;) {
    at += 5;
    CHECK(ids.insert(page.substr(at, page.find('"', at) - at)).second);
  }
  // The page's script and the values of its one chart: the content policy allows no other script.
  CHECK(count(page, "<script") ==
        count(page, "<script>") + count(page, "<script type=\"application/json\">"));
  CHECK(count(page, "<script>") == 1);
  CHECK(!has(page, "nan"));
  CHECK(!has(page, " inf"));
}

TEST_CASE("a page has the winner, its mean over seeds, the cost, and all sections") {
  SearchResults of = synthetic::search(64);
  of.warnings = {"lr is at its highest value."};
  of.dropped = {{"Muon + FP16", "Muon does not take FP16."}};
  std::string const page = search_page(of, "My <search>", "using Winner = fr::Recipe<fr::AdamW>;");
  check_markup(page);
  CHECK(has(page, "<title>My &lt;search&gt;</title>"));
  CHECK(has(page,
            "<dt>winner</dt><dd>AdamW + BF16 <small>trial 39: lr 0.0038, width 240, norm "
            "none</small></dd>"));
  CHECK(has(
      page,
      "<dt>accuracy</dt><dd>0.8939 <small>over 3 other seeds: 0.9261 \xc2\xb1 0.013</small></dd>"));
  CHECK(has(page, "<dt>trials</dt><dd>64 <small>53 pruned, 7 failed</small></dd>"));
  CHECK(has(
      page,
      "<dt>cost</dt><dd>$2.40 <small>57 min 33 s on workers, $0.126 for the winner</small></dd>"));
  CHECK(has(page, "<dt>trained</dt><dd>16.8%"));
  CHECK(has(page,
            "The winner is trial 39, AdamW + BF16, lr 0.003795, width 240, norm none. Its accuracy "
            "in the search is"));
  CHECK(has(page, "<p>Warning: lr is at its highest value.</p>"));
  CHECK(has(page, "using Winner = fr::Recipe&lt;fr::AdamW&gt;;</pre>"));
  CHECK(sections(page) == std::vector<std::string>{"values", "settings", "importance", "finalists",
                                                   "code", "trials", "rungs", "failed", "dropped"});
}

TEST_CASE("two objectives add a scatter and the size of the Pareto front") {
  SearchResults const of = synthetic::search(96, 2);
  std::string const page = search_page(of, "two");
  check_markup(page);
  CHECK(has(page, "<figure class=\"chart\" id=\"objectives\">"));
  CHECK(has(page,
            "<dt>on the Pareto front</dt><dd>" + std::to_string(of.front.size()) + " trials</dd>"));
}

TEST_CASE("a search of failures alone, and one of nothing, are pages") {
  std::string const failed = search_page(synthetic::search(12, 1, true), "failed");
  check_markup(failed);
  CHECK(has(failed, "<small>no trial is complete</small>"));
  CHECK(sections(failed) == std::vector<std::string>{"settings", "trials", "failed"});
  SearchResults nothing = synthetic::search(8);
  nothing.history.trials.clear();
  nothing.order.clear();
  nothing.winner.reset();
  std::string const page = search_page(nothing, "nothing");
  check_markup(page);
  CHECK(sections(page).empty());
  CHECK(has(page, "<dt>trials</dt><dd>0 "));
}

TEST_CASE("no text of a search is markup") {
  std::string const evil = "</script><script>x()</script>\"'<img src=x>";
  SearchResults of = synthetic::search(64, 2);
  for (std::string& each : of.domain.recipes) each += evil;
  for (auto& each : of.domain.settings) each.name += evil;
  std::get<frugal::Choice>(of.domain.settings[3].values).names = {"a" + evil, "b" + evil,
                                                                  "c" + evil};
  for (auto& each : of.objectives) each.name += evil;
  for (auto& each : of.history.trials) {
    if (!each.outcome.empty()) each.outcome = evil;
  }
  of.warnings = {evil};
  of.dropped = {{evil, evil}};
  of.stopped_by = evil;
  of.unit = "steps";
  std::string const page = search_page(of, evil, evil);
  check_markup(page);
  CHECK(!has(page, "<img"));
  CHECK(count(page, "x()</script>") == 0);
}

TEST_CASE("a thousand trials stay below a megabyte, and the page says which are not drawn") {
  std::string const page = search_page(synthetic::search(1000, 2), "many");
  check_markup(page);
  CHECK(page.size() < 1'000'000);
  CHECK(has(page,
            "trials that ended at their first rung are drawn, spread evenly over their ranks."));
}

TEST_CASE("importances are of the highest rung that thirty trials have reached") {
  SearchResults const of = synthetic::search(64);
  frugal::html::ComparableTrials const trials(of);
  CHECK(trials.budget == 250);
  CHECK(trials.samples.size() == 57);
  CHECK(frugal::html::ComparableTrials(synthetic::search(200)).budget == 1000);
  std::string const page = search_page(of, "one");
  CHECK(
      has(page,
          "for being among the best 10% by accuracy of the 57 trials with a value at 250 steps."));
  CHECK(!has(search_page(synthetic::search(6), "few"), "id=\"importance\""));
}

TEST_CASE("without a price the page has times") {
  SearchResults of = synthetic::search(64);
  of.dollars_per_hour.reset();
  std::string const page = search_page(of, "time");
  CHECK(has(page, "<dt>time on workers</dt><dd>57 min 33 s</dd>"));
  CHECK(!has(page, "$2"));
}

TEST_CASE("the page is written as a file, and results that do not fit each other are refused") {
  SearchResults of = synthetic::search(8);
  auto const file = std::filesystem::temp_directory_path() /
                    ("frugal_search_page_" + std::to_string(::getpid()) + ".html");
  frugal::write_search_page(file, of, "written");
  std::ifstream in(file);
  std::string const text{std::istreambuf_iterator<char>(in), {}};
  CHECK(text == search_page(of, "written"));
  std::filesystem::remove(file);
  of.winner = 1000;
  CHECK_THROWS_AS(search_page(of, "refused"), frugal::SettingsError);
}

}  // namespace frugal_test::search_page

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
