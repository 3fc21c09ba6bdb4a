// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/curate/curation.hpp>
#include <frugal/report/html/comparison_page.hpp>
#include <frugal/report/html/run_page.hpp>

#include "report/html/run_files.hpp"
#include "support/files.hpp"
#include "support/locales.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::html_run_page {

namespace fs = std::filesystem;
using namespace run_files;
using support::TemporaryFolder;

TEST_CASE("a seed of 64 bits is shown as it was, and none that is no number") {
  TemporaryFolder const folder;
  auto const with_seed = [&](std::string const& seed) {
    put(folder / "metrics.jsonl",
        R"({"event":"begin","step":0,"epoch":0,"samples":0,"seconds":0,"seed":)" + seed + "}\n" +
            step(1));
    return frugal::run_report_html(folder.path());
  };
  CHECK(has(with_seed("18446744073709551615"), "18446744073709551615"));
  CHECK(has(with_seed("9007199254740993"), "9007199254740993"));  // 2^53 + 1
  CHECK_FALSE(has(with_seed("null"), "Seed"));
  CHECK_FALSE(has(with_seed("\"x\""), "Seed"));
}

TEST_CASE("plan and outcome, interruptions and their cost are those of the log") {
  TemporaryFolder const folder;
  // 36 dollars per hour are one cent per second.
  put(folder / "metrics.jsonl",
      std::string(head) + step(10, R"(,"dollars":0.1)") +
          R"({"event":"plan","step":10,"epoch":0,"samples":1,"seconds":10,"steps_planned":100,"hours_planned":0.05,"dollars_planned":2})"
          "\n"
          R"({"event":"resume","step":10,"epoch":0,"samples":1,"seconds":10,"from":"step-10","steps_repeated":7,"seconds_lost":30})"
          "\n" +
          step(80, R"(,"dollars":0.8)") +
          R"({"event":"cost","step":80,"epoch":1,"samples":9,"seconds":80,"hours":0.1,"dollars":3,"lost_seconds":30,"lost_dollars":0.3})"
          "\n"
          R"({"event":"end","step":80,"epoch":1,"samples":9,"seconds":80,"stopped_by":"StopAfter"})"
          "\n");
  std::string const html = frugal::run_report_html(folder.path());
  CHECK(has(html,
            "<span>Steps</span><b>80 (\xe2\x88\x92"
            "20%)</b>"));
  CHECK(has(html, "<span>Time</span><b>6 min (+100%)</b>"));  // 0.1 h of 0.05 h
  CHECK(has(html, "<span>Dollars</span><b>$3.00 (+50%)</b>"));
  CHECK(has(html, "1 resume repeated 30 s of training, 27% of all, for $0.300."));
  CHECK(has(html, "<td>7</td><td>30 s</td><td>$0.300</td><td>step-10</td>"));
  CHECK(has(html, "by StopAfter"));
  CHECK(has(html, "421,642"));
  CHECK(has(html, "$36.00 per hour, 2 devices (given)"));
  CHECK(has(html, "id=\"x-dollars\""));
}

TEST_CASE("names that are markup are shown, not run") {
  TemporaryFolder const parent;
  fs::path const folder = parent / "<img src=x onerror=alert(1)>";
  std::string const evil = R"(</script><script>alert(1)</script>\"'&)";
  put(folder / "metrics.jsonl",
      std::string(head) + step(1, ",\"" + evil + "\":1") + step(2, ",\"" + evil + "\":2") +
          R"({"event":")" + evil + R"(","step":1,"seconds":1,"x":")" + evil + "\"}\n" +
          R"({"event":"validation","step":2,"seconds":2,")" + evil + "\":1}\n");
  put(folder / "levers.json", R"({"version":1,"title":")" + evil + R"(","unit":")" + evil +
                                  R"(","steps":[{"name":")" + evil + R"(","value":2,"note":")" +
                                  evil + "\"}]}");
  put(folder / "profile" / "hot_spots.json",
      R"({"version":1,"windows":[{"advice":")" + evil + R"(","trace":")" + evil +
          R"(","hot_spots":[{"name":")" + evil + R"(","share":0.5}]}]})");
  for (std::string const& html :
       {frugal::run_report_html(folder), frugal::comparison_report_html({folder, folder})}) {
    CHECK(count(html, "<script") == 1 + count(html, "<figure class=\"chart\""));
    CHECK(count(html, "<script") == count(html, "</script"));
    CHECK_FALSE(has(html, "<img"));
    CHECK(has(html, "&lt;img src=x onerror=alert(1)&gt;"));
    CHECK_FALSE(has(html, "alert(1)</script>\""));
  }
}

TEST_CASE("a page loads nothing and runs one script, which it names by its hash") {
  TemporaryFolder const folder;
  put(folder / "metrics.jsonl", std::string(head) + step(1) + step(2));
  std::string const html = frugal::run_report_html(folder.path());
  CHECK(has(html, "default-src 'none'"));
  CHECK(has(html, "base-uri 'none'"));
  CHECK(has(html, "form-action 'none'"));
  CHECK(has(html, std::string("script-src '") + std::string(frugal::html::script_hash) + "'"));
  for (char const* fetch :
       {"src=", "@import", "url(", "fetch(", "<iframe", "http-equiv=\"refresh"}) {
    CHECK_FALSE(has(html, fetch));
  }
  CHECK(count(html, "http://") == count(html, "http://www.w3.org/2000/svg"));
  CHECK_FALSE(has(html, "https://"));
}

TEST_CASE("damaged lines and files are named on the page and end nothing") {
  TemporaryFolder const folder;
  put(folder / "metrics.jsonl", std::string(head) + "broken\n" + step(1) + R"({"event":"st)");
  put(folder / "levers.json", R"({"version":1,"steps":[{"name":"a","value":-1}]})");
  put(folder / "profile" / "hot_spots.json", "[");
  put(folder / "duplicates.jsonl", "{}\n");
  std::string const html = frugal::run_report_html(folder.path());
  CHECK(has(html, "metrics.jsonl has 2 damaged lines"));
  CHECK(has(html, " line 3, it is no flat JSON object"));
  CHECK(has(html, " line 5, "));
  CHECK(has(html, "is cut off"));
  CHECK(has(html,
            "levers.json is left out: the table of levers cannot be read: the &quot;value&quot;"));
  CHECK(has(html, "profile/hot_spots.json is left out"));
  CHECK(has(html, "duplicates.jsonl is left out"));
  CHECK(has(html, "the run goes on, or was killed"));
}

TEST_CASE("a folder that is none, is empty or has no log is refused with its path") {
  TemporaryFolder const folder;
  put(folder / "file", "x");
  fs::create_directories(folder / "empty");
  for (char const* name : {"missing", "file", "empty"}) {
    try {
      static_cast<void>(frugal::run_report_html(folder / name));
      FAIL("it was taken");
    } catch (frugal::DataError const& error) {
      CHECK(has(error.fault().where, (folder / name).string()));
      CHECK_FALSE(error.fault().why.empty());
      CHECK_FALSE(error.fault().fix.empty());
    }
  }
  CHECK_THROWS_AS(static_cast<void>(frugal::comparison_report_html({})), frugal::SettingsError);
}

TEST_CASE("a report replaces an older one as a whole, and one that fails leaves it") {
  TemporaryFolder const folder;
  put(folder / "run" / "metrics.jsonl", std::string(head) + step(1));
  put(folder / "report.html", "old");
  frugal::write_run_report(folder / "report.html", folder / "run");
  CHECK(support::text_of(folder / "report.html").starts_with("<!doctype html>"));
  put(folder / "report.html", "old");
  CHECK_THROWS_AS(frugal::write_run_report(folder / "report.html", folder / "none"),
                  frugal::DataError);
  CHECK(support::text_of(folder / "report.html") == "old");
  CHECK_THROWS_AS(frugal::write_run_report(folder / "none" / "report.html", folder / "run"),
                  frugal::StoreError);
}

TEST_CASE("duplicates are those of the file that a curation writes") {
  TemporaryFolder const folder;
  put(folder / "metrics.jsonl", std::string(head) + step(1));
  CHECK_FALSE(has(frugal::run_report_html(folder.path()), "id=\"duplicates\""));
  put_duplicates(folder / "duplicates.jsonl");
  std::string const html = frugal::run_report_html(folder.path());
  CHECK(has(html, "<section id=\"duplicates\""));
  CHECK(has(html, "<p>Jaccard 0.8.</p>"));
  CHECK(has(html, "<dt>samples</dt><dd>1,200</dd>"));
  CHECK(has(html, "<dt>removed</dt><dd>30 <small>2.50%</small></dd>"));
  CHECK(has(html, "<dt>of these, copies</dt><dd>10</dd>"));
  CHECK(has(html, "<dt>bytes saved</dt><dd>60.0 KiB</dd>"));    // 30 of 2 KiB
  CHECK(has(html, "<dt>saved per epoch</dt><dd>$0.150</dd>"));  // 15 s of a cent
}

TEST_CASE(
    "a metric's best value is that of its direction, and of an unknown one the last is shown") {
  TemporaryFolder const folder;
  std::string text(head);
  for (char const* values :
       {R"("wer":0.3,"cider":5)", R"("wer":0.1,"cider":9)", R"("wer":0.2,"cider":7)"}) {
    text += R"({"event":"validation","step":1,"seconds":1,)" + std::string(values) + "}\n";
  }
  put(folder / "metrics.jsonl", text);
  std::string html = frugal::run_report_html(folder.path());
  CHECK(has(html, "<dt>best validation wer</dt><dd>0.1 "));
  CHECK(has(html, "<dt>last validation cider</dt><dd>7 "));
  // A recipe that watches it knows.
  put(folder / "metrics.jsonl",
      text +
          R"({"event":"recipe","step":1,"seconds":1,"recipe":"EarlyStop<Watch<\"cider\", Better::higher>>"})" +
          "\n");
  html = frugal::run_report_html(folder.path());
  CHECK(has(html, "<dt>best validation cider</dt><dd>9 "));
}

TEST_CASE("a page is the same, byte for byte, in every locale") {
  TemporaryFolder const folder;
  std::string text(head);
  for (int i = 1; i < 40; ++i)
    text += step(1000 * i + 7, R"(,"memory_bytes":1234567890.5,"dollars":0.25)");
  put(folder / "metrics.jsonl", text);
  put(folder / "levers.json",
      R"({"version":1,"steps":[{"name":"a","value":37748.5},{"name":"b","value":0.125}]})");
  put_duplicates(folder / "duplicates.jsonl");
  std::string const run = frugal::run_report_html(folder.path());
  std::string const both = frugal::comparison_report_html({folder.path(), folder.path()});
  auto const check = [&] {
    CHECK(frugal::run_report_html(folder.path()) == run);
    CHECK(frugal::comparison_report_html({folder.path(), folder.path()}) == both);
  };
  support::GroupedLocale const grouped;
  check();
  support::CommaLocale const comma;
  if (comma.works()) {
    check();
  } else {
    MESSAGE("no locale with a comma is installed, nor can be made");
  }
}

TEST_CASE("the waterfall of levers.json has each total's difference from the one before it") {
  // The totals of a published case: 8 devices for 72 h.
  auto const levers = frugal::html::parse_levers(
      R"({"version":1,"currency":"USD","title":"t","steps":[{"name":"on demand","value":37748},{"name":"+ spot","value":11324.4},{"name":"+ mistake","value":12000}]})",
      "levers.json");
  frugal::html::Page page;
  frugal::html::write_waterfall(page, levers);
  std::string const& html = page.text();
  CHECK(has(html, "<b>$37,748</b>"));
  CHECK(has(html,
            "\xe2\x88\x92$26,424 (\xe2\x88\x92"
            "70%)"));
  CHECK(has(html, "class=\"bad\">+$675.60 (+6.0%)"));
  CHECK(has(html, "$12,000, 1/3.1"));
  // A floating bar from 30% to 100% of the width.
  CHECK(has(html, "class=\"saved\" x=\"30.00%\" width=\"70.00%\""));
  for (char const* bad : {"", "7", "{}", R"({"version":2,"steps":[]})", R"({"version":1})",
                          R"({"version":1,"steps":[]})", R"({"version":1,"steps":[{"value":1}]})",
                          R"({"version":1,"steps":[{"name":"a"}]})",
                          R"({"version":1,"steps":[{"name":"a","value":1e300}]})"}) {
    CHECK_THROWS_AS(static_cast<void>(frugal::html::parse_levers(bad, "x")), frugal::DataError);
  }
}

}  // namespace frugal_test::html_run_page
