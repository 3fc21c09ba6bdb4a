// SPDX-License-Identifier: Apache-2.0
// torch-free

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <frugal/data/curate/curation.hpp>
#include <frugal/report/html/comparison_page.hpp>
#include <frugal/report/html/run_folder.hpp>
#include <frugal/report/html/run_page.hpp>

#include "report/html/run_files.hpp"
#include "support/files.hpp"
#include "support/locales.hpp"
#include "support/page_data.hpp"

namespace frugal_test::html_run_page {

namespace fs = std::filesystem;
using namespace page_data;
using namespace run_files;
using support::TemporaryFolder;
using namespace frugal::html;

json report(fs::path const& folder) { return data_of(frugal::run_report_html(folder)); }
std::string const less = frugal::html::minus;

TEST_CASE("a seed of 64 bits is shown as it was, and none that is no number") {
  TemporaryFolder const folder;
  auto const with_seed = [&](std::string const& seed) {
    put(folder / "metrics.jsonl",
        R"({"event":"begin","step":0,"epoch":0,"samples":0,"seconds":0,"seed":)" + seed + "}\n" +
            step(1));
    return row(section(report(folder.path()), "facts"), "Seed");
  };
  CHECK(with_seed("18446744073709551615")[1].at("text") == "18446744073709551615");
  CHECK(with_seed("9007199254740993")[1].at("text") == "9007199254740993");  // 2^53 + 1
  CHECK(with_seed("null").is_null());
  CHECK(with_seed("\"x\"").is_null());
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
  json const page = report(folder.path());
  json const plan = section(page, "plan"), stops = section(page, "interruptions");
  CHECK(bar(plan, "Steps").at("value") == "80 (" + less + "20%)");
  CHECK(bar(plan, "Time").at("value") == "6 min (+100%)");  // 0.1 h of 0.05 h
  CHECK(bar(plan, "Dollars").at("value") == "$3.00 (+50%)");
  CHECK(bar(plan, "planned at step 10").at("value") == "100");
  CHECK(bar(plan, "planned at step 10").at("kind") == "planned");
  CHECK(says(stops, "1 resume repeated 30 s of training, 27% of all, for $0.300."));
  CHECK(row(stops, "resume") == json{"resume", "10", "10 s", "7", "30 s", "$0.300", "step-10"});
  json const facts = section(page, "facts");
  CHECK(row(facts, "Ended")[1].at("text") == "by StopAfter");
  CHECK(row(facts, "Parameters")[1].at("text") == "421,642");
  CHECK(row(facts, "Price")[1].at("text") == "$36.00 per hour, 2 devices (given)");
  CHECK(chart(page, "Loss").at("axes").at(2).at("id") == "dollars");
  CHECK(chart(page, "Loss").at("marks").at(0).at("step") == 10);
  CHECK(figure(page, "lost to interruptions") == json{"30 s", "$0.300"});
}

TEST_CASE("names that are markup are shown, not run") {
  TemporaryFolder const parent;
  fs::path const folder = parent / "<img src=x onerror=alert(1)>";
  std::string const evil = R"(</script><script>alert(1)</script>\"'&)";
  std::string const shown = R"(</script><script>alert(1)</script>"'&)";
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
    CHECK_FALSE(has(html, "<img"));
    CHECK_FALSE(has(html, "<script>alert"));
  }
  json const page = report(folder);
  CHECK(page.at("title") == "<img src=x onerror=alert(1)>");
  CHECK(chart(page, shown).at("lines").at(0).at("value").at(0) == 1);
  CHECK(section(page, "savings").at("title") == shown);
  CHECK(bar(page, shown).at("note") == shown);
  CHECK(row(section(page, "hot-spots"), shown)[1] == "50%");
}

TEST_CASE("damaged lines and files are named on the page and end nothing") {
  TemporaryFolder const folder;
  put(folder / "metrics.jsonl", std::string(head) + "broken\n" + step(1) + R"({"event":"st)");
  put(folder / "levers.json", R"({"version":1,"steps":[{"name":"a","value":-1}]})");
  put(folder / "profile" / "hot_spots.json", "[");
  put(folder / "duplicates.jsonl", "{}\n");
  json const page = report(folder.path());
  std::string notes;
  json const list = parts(section(page, "notes"), "list").at(0);
  for (json const& each : list.at("items")) notes += each.get<std::string>() + '\n';
  CHECK(has(notes, "metrics.jsonl has 2 damaged lines"));
  CHECK(has(notes, " line 3, it is no flat JSON object"));
  CHECK(has(notes, " line 5, "));
  CHECK(has(notes, "is cut off"));
  CHECK(has(notes, "levers.json is left out: the table of levers cannot be read: the \"value\""));
  CHECK(has(notes, "profile/hot_spots.json is left out"));
  CHECK(has(notes, "duplicates.jsonl is left out"));
  CHECK(has(row(section(page, "facts"), "Ended")[1].at("text").get<std::string>(),
            "the run goes on, or was killed"));
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

TEST_CASE("a profile has its hot spots, its windows, and its memory as a chart") {
  TemporaryFolder const folder;
  put(folder / "metrics.jsonl", std::string(head) + step(1));
  put(folder / "profile" / "hot_spots.json",
      R"({"version":1,"windows":[{"step":1,"bound":"data","hot_spots":[]},)"
      R"({"step":2,"seconds":1.5,"step_seconds":0.5,"device_idle":0.25,"bound":"compute","advice":"BF16",)"
      R"("trace":"t.json","hot_spots":[{"name":"mm","share":0.6,"microseconds":900000,"calls":40}],)"
      R"("memory":[{"seconds":0,"bytes":1024},{"seconds":1,"bytes":2048}]}]})");
  json const found = section(report(folder.path()), "hot-spots");
  CHECK(says(found, "Profiled at step 2 for 1.5 s; the device was idle 25%; bound by compute."));
  CHECK(says(found, "BF16"));
  CHECK(row(found, "mm") == json{"mm", "60%", "900 ms", "40"});
  json const memory = chart(found, "Memory in the window");
  CHECK(memory.at("unit") == "bytes");
  CHECK(memory.at("axes").size() == 1);
  CHECK(memory.at("lines").at(0).at("value") == json{1024, 2048});
  CHECK(memory.at("lines").at(0).at("seconds") == json{0, 1});
  json const windows = parts(found, "table").at(1).at("rows");
  std::string const none = frugal::html::no_value;
  CHECK(windows == json{{"1", "data", none, none, none, ""},
                        {"2", "compute", "25%", "500 ms", none, "t.json"}});
}

TEST_CASE("events have what the log says of them, behind a click") {
  TemporaryFolder const folder;
  put(folder / "metrics.jsonl",
      step(1) + R"({"event":"odd","step":1,"seconds":1,"epoch":1,"a":0.5,"b":"c"})"
                "\n");
  json const events = section(report(folder.path()), "events");
  CHECK(table(events).at("folded") == "1 events of the log");
  CHECK(row(events, "odd")[3] == json{{"text", "a 0.5, b c"}, {"wrap", true}});
}

TEST_CASE("duplicates are those of the file that a curation writes") {
  TemporaryFolder const folder;
  put(folder / "metrics.jsonl", std::string(head) + step(1));
  CHECK(section(report(folder.path()), "duplicates").is_null());
  put_duplicates(folder / "duplicates.jsonl");
  json const found = section(report(folder.path()), "duplicates");
  CHECK(says(found, "Jaccard 0.8."));
  CHECK(figure(found, "samples")[0] == "1,200");
  CHECK(figure(found, "removed") == json{"30", "2.50%"});
  CHECK(figure(found, "of these, copies")[0] == "10");
  CHECK(figure(found, "bytes saved")[0] == "60.0 KiB");    // 30 of 2 KiB
  CHECK(figure(found, "saved per epoch")[0] == "$0.150");  // 15 s of a cent
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
  json page = report(folder.path());
  CHECK(figure(page, "best validation wer") == json{"0.1", "at step 1"});
  CHECK(figure(page, "last validation cider")[0] == "7");
  // A recipe that watches it knows.
  put(folder / "metrics.jsonl",
      text +
          R"({"event":"recipe","step":1,"seconds":1,"recipe":"EarlyStop<Watch<\"cider\", Better::higher>>"})" +
          "\n");
  page = report(folder.path());
  CHECK(figure(page, "best validation cider")[0] == "9");
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
  json const data = data_of(std::move(page));
  CHECK(bar(data, "on demand").at("value") == "$37,748");
  CHECK(bar(data, "+ spot").at("value") == less + "$26,424 (" + less + "70%)");
  CHECK(bar(data, "+ mistake").at("value") == "+$675.60 (+6.0%)");
  CHECK(bar(data, "+ mistake").at("kind") == "more");
  CHECK(bar(data, "Result").at("value") == "$12,000, 1/3.1");
  // A floating bar from all to 30% of the width.
  CHECK(bar(data, "+ spot").at("kind") == "saved");
  CHECK(bar(data, "+ spot").at("from") == 1);
  CHECK(bar(data, "+ spot").at("to").get<double>() == doctest::Approx(0.3));
  for (char const* bad : {"", "7", "{}", R"({"version":2,"steps":[]})", R"({"version":1})",
                          R"({"version":1,"steps":[]})", R"({"version":1,"steps":[{"value":1}]})",
                          R"({"version":1,"steps":[{"name":"a"}]})",
                          R"({"version":1,"steps":[{"name":"a","value":1e300}]})"}) {
    CHECK_THROWS_AS(static_cast<void>(frugal::html::parse_levers(bad, "x")), frugal::DataError);
  }
}

TEST_CASE("errors fall, scores rise, and of other names the direction is unknown") {
  for (char const* name : {"loss", "wer", "cer", "fid", "nll", "mae", "mse", "rmse", "perplexity",
                           "top1_error", "word_error_rate", "val_loss", "WER"}) {
    CAPTURE(name);
    CHECK(better_by_name(name) == Better::lower);
  }
  for (char const* name : {"accuracy", "top5", "f1", "f1_macro", "r2", "roc_auc", "roc_auc_ovr",
                           "precision_macro", "recall", "bleu", "Top-5 accuracy"}) {
    CAPTURE(name);
    CHECK(better_by_name(name) == Better::higher);
  }
  // "loss" and "top" are parts of words here.
  for (char const* name : {"", "cider", "glossary", "stopped", "f2", "seconds", "42"}) {
    CAPTURE(name);
    CHECK(better_by_name(name) == Better::unknown);
  }
}

TEST_CASE("the recipe of the log comes before the name") {
  RunLog log;
  LogLine recipe{.event = "recipe"};
  recipe.fields.push_back(
      {.name = "recipe",
       .text =
           R"(KeepBest<Watch<"cider", Better::higher>>, EarlyStop<Watch<"top5", Better::lower>>)"});
  log.latest.push_back(recipe);
  CHECK(better_of(log, "cider") == Better::higher);
  CHECK(better_of(log, "top5") == Better::lower);
  CHECK(better_of(log, "accuracy") == Better::higher);
  CHECK(better_of(log, "cid") == Better::unknown);
  CHECK(better_of({}, "cider") == Better::unknown);
}

TEST_CASE("the best is the lowest or the highest value, and of an unknown direction the last one") {
  Series series;
  for (double const value : {3.0, 1.0, 2.0}) series.add({.value = value});
  CHECK(best_of(Better::lower, series).point.value == 1);
  CHECK(best_of(Better::higher, series).point.value == 3);
  CHECK(best_of(Better::unknown, series).point.value == 2);
  CHECK(best_of(Better::unknown, series).name == std::string("last"));
}

RunFolder run_with(std::string const& fields) {
  RunLogReader reader;
  reader.feed(step(1, fields) + step(2, fields));
  return {.path = "run", .name = "run", .log = reader.finish()};
}
json curves(std::vector<RunFolder> const& runs) {
  Page page;
  write_curves(page, runs);
  return data_of(std::move(page));
}
/// The last value of each line.
std::vector<double> last(json const& chart) {
  std::vector<double> values;
  for (json const& each : chart.at("lines")) values.push_back(each.at("value").back());
  return values;
}
std::size_t titled(json const& data, std::string const& title) {
  auto const all = parts(data, "chart");
  return static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [&](json const& each) { return each.at("title") == title; }));
}
std::string const rate = R"(,"learning_rate":0.003,"lr_factor":0.5)",
                  factor = R"(,"lr_factor":0.25)";

TEST_CASE("the learning rate is drawn where the log has it, and its factor otherwise") {
  json const with = curves({run_with(rate)});
  CHECK(titled(with, "Learning rate") == 1);
  CHECK(titled(with, "lr_factor") == 0);
  CHECK(last(chart(with, "Learning rate")) == std::vector{0.003});
  CHECK(!chart(with, "Learning rate").contains("note"));
  json const without = curves({run_with(factor)});
  CHECK(titled(without, "Learning rate") == 1);
  CHECK(chart(without, "Learning rate").at("note") == "factor of the schedule");
  CHECK(last(chart(without, "Learning rate")) == std::vector{0.25});
  CHECK(titled(curves({run_with("")}), "Learning rate") == 0);
}

TEST_CASE("runs are compared by their factors if one of them has no learning rate") {
  json const mixed = curves({run_with(rate), run_with(factor)});
  CHECK(titled(mixed, "Learning rate") == 1);
  CHECK(last(chart(mixed, "Learning rate")) == std::vector{0.5, 0.25});
  // A run without either does not matter.
  json const both = curves({run_with(rate), run_with(rate), run_with("")});
  CHECK(last(chart(both, "Learning rate")) == std::vector{0.003, 0.003});
}

TEST_CASE("each chart has its unit, where it begins, and the axes that the log knows") {
  json const plain = curves({run_with(R"(,"memory_bytes":1000,"data_wait":0.5,"my_seconds":2)")});
  CHECK(chart(plain, "Loss").at("log") == true);
  CHECK(!chart(plain, "Loss").contains("zero"));
  CHECK(chart(plain, "Memory").at("unit") == "bytes");
  CHECK(chart(plain, "Memory").at("zero") == true);
  CHECK(chart(plain, "Waiting for data").at("unit") == "percent");
  CHECK(chart(plain, "my_seconds").at("unit") == "seconds");
  CHECK(chart(plain, "Loss").at("axes").size() == 2);
  json const priced = curves({run_with(R"(,"dollars":0.5,"hours":1)")});
  CHECK(chart(priced, "Loss").at("axes").at(2).at("id") == "dollars");
  CHECK(chart(priced, "Dollars").at("lines").at(0).at("dollars") == json{0.5, 0.5});
  CHECK(titled(priced, "Hours") == 0);
}

}  // namespace frugal_test::html_run_page
