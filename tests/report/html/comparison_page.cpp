// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/comparison_page.hpp>
#include <frugal/report/html/run_page.hpp>

#include "report/html/run_files.hpp"
#include "support/files.hpp"
#include "support/page_data.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace frugal_test::html_comparison_page {

using namespace page_data;
using namespace run_files;
using support::TemporaryFolder;

using Folders = std::vector<std::filesystem::path>;

json report(Folders const& folders) { return data_of(frugal::comparison_report_html(folders)); }
std::string const none = frugal::html::no_value, less = frugal::html::minus;

TEST_CASE("a comparison has a row and a line per run, and the difference between them") {
  TemporaryFolder const folder;
  for (int i : {1, 2}) {
    put(folder / ("run" + std::to_string(i)) / "metrics.jsonl",
        std::string(head) + step(10) + step(3600 / i) +
            R"({"event":"validation","step":20,"seconds":20,"accuracy":0.)" +
            std::to_string(7 + i) + "}\n");
  }
  json const page = report({folder / "run1", folder / "run2"});
  CHECK(page.at("title") == "Comparison of 2 runs");
  json const all = section(page, "all");
  CHECK(table(all).at("head") ==
        json{"run", "steps", "time", "best accuracy", "at step", "after", "lost", "ended"});
  CHECK(row(all, "run1") ==
        json{"run1", "3,600", "1 h", "0.8", "20", "20 s", "0 s", "no end in the log"});
  CHECK(row(all, "run2") ==
        json{"run2", "1,800", "30 min", "0.9", "20", "20 s", "0 s", "no end in the log"});
  // One hour, then half of it.
  CHECK(bar(page, "run2").at("value") == less + "30 min (" + less + "50%)");
  CHECK(bar(page, "run2").at("kind") == "saved");
  CHECK(bar(page, "Result").at("value") == "30 min, 1/2");
  json const lines = chart(page, "Accuracy").at("lines");
  CHECK(lines.at(0).at("name") == "run1");
  CHECK(lines.at(1).at("value") == json::array({0.9}));
}

TEST_CASE("a run that diverged has no best value, and no other loss in its place") {
  TemporaryFolder const folder;
  auto const validation = [](char const* loss) {
    return R"({"event":"validation","step":20,"seconds":20,"loss":)" + std::string(loss) + "}\n";
  };
  put(folder / "good" / "metrics.jsonl",
      std::string(head) + step(10) + validation("0.5") + validation("0.4") + step(30));
  put(folder / "bad" / "metrics.jsonl",
      std::string(head) + step(10) + validation("null") + step(30));
  json const page = report({folder / "good", folder / "bad"}), all = section(page, "all");
  CHECK(row(all, "good") ==
        json{"good", "30", "30 s", "0.4", "20", "20 s", "0 s", "no end in the log"});
  CHECK(row(all, "bad") == json{"bad", "30", "30 s", none, none, none, "0 s", "no end in the log"});
  CHECK(chart(page, "Validation loss").at("lines").size() == 1);
}

TEST_CASE("what an interruption cost is in dollars, and another currency is no dollars") {
  TemporaryFolder const folder;
  std::string euros(head);
  euros.replace(euros.find("USD"), 3, "EUR");
  std::string const resume = R"({"event":"resume","step":10,"seconds":10,"seconds_lost":500})"
                             "\n";
  put(folder / "a" / "metrics.jsonl", std::string(head) + step(10) + resume + step(20));
  put(folder / "b" / "metrics.jsonl", euros + step(10) + resume + step(20));
  CHECK(has(frugal::run_report_html(folder / "a"), "$5.00"));  // $36 an hour
  CHECK_FALSE(has(frugal::run_report_html(folder / "b"), "$5"));
  json const page = section(report({folder / "a", folder / "b"}), "interruptions");
  CHECK(row(page, "a")[7] == "$5.00");
  CHECK(row(page, "b")[7] == none);
}

TEST_CASE("a comparison has the sections of its runs, and none that no run fills") {
  TemporaryFolder const folder;
  for (char const* run : {"a", "b"})
    put(folder / run / "metrics.jsonl", std::string(head) + step(1));
  auto const found = [&] { return sections(report({folder / "a", folder / "b"})); };
  CHECK(found() == std::vector<std::string>{"all", "savings", "curves"});
  put(folder / "b" / "metrics.jsonl",
      std::string(head) + step(1) +
          R"({"event":"plan","step":1,"seconds":1,"steps_planned":10})"
          "\n"
          R"({"event":"resume","step":1,"seconds":1,"seconds_lost":2})"
          "\n");
  put(folder / "b" / "profile" / "hot_spots.json", R"({"version":1,"windows":[{"hot_spots":[]}]})");
  put_duplicates(folder / "b" / "duplicates.jsonl");
  CHECK(found() == std::vector<std::string>{"all", "savings", "curves", "plan", "interruptions",
                                            "hot-spots", "duplicates"});
}

/// The rows of a section, for a run that has everything, and for one that has only steps.
class TwoRuns {
 public:
  TwoRuns() {
    put(folder_ / "full" / "metrics.jsonl",
        std::string(head) + step(10) +
            R"({"event":"plan","step":10,"seconds":10,"steps_planned":100,"hours_planned":0.05,"dollars_planned":2})"
            "\n"
            R"({"event":"preempted","step":10,"seconds":10,"by":"SIGTERM"})"
            "\n"
            R"({"event":"resume","step":10,"seconds":10,"seconds_lost":20})"
            "\n"
            R"({"event":"resume","step":20,"seconds":20,"seconds_lost":10})"
            "\n" +
            step(90) +
            R"({"event":"cost","step":90,"seconds":90,"hours":0.1,"dollars":3,"lost_dollars":0.3})"
            "\n");
    put(folder_ / "full" / "profile" / "hot_spots.json",
        R"({"version":1,"windows":[{"hot_spots":[{"name":"old","share":1}]},)"
        R"({"bound":"compute","device_idle":0.25,"step_seconds":0.5,"hot_spots":[)"
        R"({"name":"add","share":0.2},{"name":"<mm>","share":1.6}]}]})");
    put_duplicates(folder_ / "full" / "duplicates.jsonl");
    put(folder_ / "plain" / "metrics.jsonl", step(10) + step(40));
  }
  /// Without the name of the run.
  json row_of(std::string const& id, std::string const& run) const {
    json found = row(section(report({folder_ / "full", folder_ / "plain"}), id), run);
    found.erase(0);
    return found;
  }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("a run without a plan has an outcome, and a run with one its distance from it") {
  TwoRuns const two;
  // 0.1 h of 0.05 h; $3 of $2.
  CHECK(two.row_of("plan", "full") ==
        json{"100", "90 (" + less + "10%)", "3 min", "6 min (+100%)", "$2.00", "$3.00 (+50%)"});
  CHECK(two.row_of("plan", "plain") == json{none, "40", none, "40 s", none, none});
}

TEST_CASE("interruptions are counted by kind, with what they cost") {
  TwoRuns const two;
  // 30 s of 90 s and these 30 s.
  CHECK(two.row_of("interruptions", "full") == json{"1", "2", "0", "0", "30 s", "25%", "$0.300"});
  CHECK(two.row_of("interruptions", "plain") == json{"0", "0", "0", "0", "0 s", "0.0%", none});
}

TEST_CASE("the top operation is that of the last window, and may take more than its time") {
  TwoRuns const two;
  CHECK(two.row_of("hot-spots", "full") == json{"compute", "<mm>", "160%", "25%", "500 ms"});
  CHECK(two.row_of("hot-spots", "plain") == json{none, none, none, none, none});
}

TEST_CASE("duplicates are counted for each run that has their report") {
  TwoRuns const two;
  CHECK(two.row_of("duplicates", "full") ==
        json{"1,200", "30", "2.50%", "10", "60.0 KiB", "$0.150"});
  CHECK(two.row_of("duplicates", "plain") == json{none, none, none, none, none, none});
}

}  // namespace frugal_test::html_comparison_page
