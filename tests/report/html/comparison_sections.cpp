// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/comparison_sections.hpp>
#include <frugal/report/html/run_folder.hpp>

#include "report/html/run_files.hpp"
#include "support/files.hpp"

#include <string>
#include <vector>

namespace frugal_test::html_comparison_sections {

using namespace run_files;
using namespace frugal::html;
using support::TemporaryFolder;

/// A run that has everything, and one that has only steps.
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
    for (char const* name : {"full", "plain"}) runs.push_back(read_run_folder(folder_ / name));
  }

  std::vector<RunFolder> runs{};

 private:
  TemporaryFolder folder_;
};

std::string written(void (*write)(Page&, std::vector<RunFolder> const&),
                    std::vector<RunFolder> const& runs) {
  Page page;
  write(page, runs);
  return page.text();
}
std::string row(std::string const& name, std::vector<std::string> const& cells) {
  std::string text = "<tr><th scope=\"row\">" + name + "</th>";
  for (std::string const& each : cells) text += "<td>" + each + "</td>";
  return text + "</tr>";
}
std::string const none = no_value;

TEST_CASE("a run without a plan has an outcome, and a run with one its distance from it") {
  std::string const html = written(&write_plans, TwoRuns().runs);
  // 0.1 h of 0.05 h; $3 of $2.
  CHECK(has(html, row("full", {"100",
                               "90 (\xe2\x88\x92"
                               "10%)",
                               "3 min", "6 min (+100%)", "$2.00", "$3.00 (+50%)"})));
  CHECK(has(html, row("plain", {none, "40", none, "40 s", none, none})));
}

TEST_CASE("interruptions are counted by kind, with what they cost") {
  std::string const html = written(&write_all_interruptions, TwoRuns().runs);
  // 30 s of 90 s and these 30 s.
  CHECK(has(html, row("full", {"1", "2", "0", "0", "30 s", "25%", "$0.300"})));
  CHECK(has(html, row("plain", {"0", "0", "0", "0", "0 s", "0.0%", none})));
}

TEST_CASE("the top operation is that of the last window, and may take more than its time") {
  std::string const html = written(&write_all_hot_spots, TwoRuns().runs);
  CHECK(has(html, row("full", {"compute", "&lt;mm&gt;", "160%", "25%", "500 ms"})));
  CHECK(has(html, row("plain", {none, none, none, none, none})));
}

TEST_CASE("duplicates are counted for each run that has their report") {
  std::string const html = written(&write_all_duplicates, TwoRuns().runs);
  CHECK(has(html, row("full", {"1,200", "30", "2.50%", "10", "60.0 KiB", "$0.150"})));
  CHECK(has(html, row("plain", {none, none, none, none, none, none})));
}

TEST_CASE("a section that no run has anything for is left out") {
  std::vector<RunFolder> const plain{TwoRuns().runs.back()};
  for (auto const write :
       {&write_plans, &write_all_interruptions, &write_all_hot_spots, &write_all_duplicates}) {
    CHECK(written(write, plain).empty());
  }
}

}  // namespace frugal_test::html_comparison_sections
