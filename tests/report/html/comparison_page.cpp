// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/comparison_page.hpp>
#include <frugal/report/html/run_page.hpp>

#include "report/html/run_files.hpp"
#include "support/files.hpp"

#include <string>

namespace frugal_test::html_comparison_page {

using namespace run_files;
using support::TemporaryFolder;

TEST_CASE("a comparison has a row and a line per run, and the difference between them") {
  TemporaryFolder const folder;
  for (int i : {1, 2}) {
    put(folder / ("run" + std::to_string(i)) / "metrics.jsonl",
        std::string(head) + step(10) + step(3600 / i) +
            R"({"event":"validation","step":20,"seconds":20,"accuracy":0.)" +
            std::to_string(7 + i) + "}\n");
  }
  std::string const html = frugal::comparison_report_html({folder / "run1", folder / "run2"});
  CHECK(has(html, "Comparison of 2 runs"));
  CHECK(has(html, "<th scope=\"row\">run1</th><td>3,600</td><td>1 h</td><td>0.8</td>"));
  CHECK(has(html, "<th scope=\"row\">run2</th><td>1,800</td><td>30 min</td><td>0.9</td>"));
  // One hour, then half of it.
  CHECK(has(html,
            "<span>run2</span><b><span class=\"good\">\xe2\x88\x92"
            "30 min (\xe2\x88\x92"
            "50%)</span></b>"));
  CHECK(has(html, "30 min, 1/2"));
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
  std::string const html = frugal::comparison_report_html({folder / "good", folder / "bad"});
  CHECK(has(html, "<th scope=\"row\">good</th><td>30</td><td>30 s</td><td>0.4</td><td>20</td>"));
  CHECK(has(html,
            "<th scope=\"row\">bad</th><td>30</td><td>30 s</td><td>\xe2\x80\x93</td>"
            "<td>\xe2\x80\x93</td><td>\xe2\x80\x93</td>"));
  CHECK(has(html, "Validation loss"));
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
  std::string const html = frugal::comparison_report_html({folder / "a", folder / "b"});
  CHECK(count(html, "$5.00") == count(frugal::comparison_report_html({folder / "a"}), "$5.00"));
}

TEST_CASE("a comparison has the sections of its runs, and none that no run fills") {
  TemporaryFolder const folder;
  for (char const* run : {"a", "b"})
    put(folder / run / "metrics.jsonl", std::string(head) + step(1));
  auto const page = [&] { return frugal::comparison_report_html({folder / "a", folder / "b"}); };
  auto const sections = {"plan", "interruptions", "hot-spots", "duplicates"};
  std::string html = page();
  for (std::string const id : sections) CHECK_FALSE(has(html, "<section id=\"" + id + '"'));
  put(folder / "b" / "metrics.jsonl",
      std::string(head) + step(1) +
          R"({"event":"plan","step":1,"seconds":1,"steps_planned":10})"
          "\n"
          R"({"event":"resume","step":1,"seconds":1,"seconds_lost":2})"
          "\n");
  put(folder / "b" / "profile" / "hot_spots.json", R"({"version":1,"windows":[{"hot_spots":[]}]})");
  put_duplicates(folder / "b" / "duplicates.jsonl");
  html = page();
  for (std::string const id : sections) CHECK(has(html, "<section id=\"" + id + '"'));
}

}  // namespace frugal_test::html_comparison_page
