// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>
#include <frugal/report/html_report.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/page_data.hpp"
#include "support/running.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace frugal_test::policy_html_report {

using namespace support;
using namespace support::dying_runs;
using frugal::Every;
using frugal::HtmlReport;
using frugal::Log;
using Optimizer = frugal::Optimize<frugal::AdamW>;
using Saves = frugal::Checkpoint<Every<4>>;

std::string text_at(std::filesystem::path const& path) {
  REQUIRE(std::filesystem::exists(path));
  return text_of(path);
}
std::size_t count(std::string const& text, std::string const& what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; ++at) ++found;
  return found;
}

TEST_CASE("a run ends with a report that has its last line, its recipe and its device") {
  TemporaryFolder const folder;
  auto const report =
      run({.folder = folder.path()}, Optimizer{}, Log<Every<1>>{}, HtmlReport<>{}).report;
  CHECK(report.warnings.empty());
  std::string const html = text_at(folder / "report.html");
  CHECK(html.starts_with("<!doctype html>"));
  CHECK(html.ends_with("</html>\n"));
  auto const page = page_data::data_of(html);
  auto const fact = [&](char const* name) {
    return page_data::row(page_data::section(page, "facts"), name)[1].at("text");
  };
  CHECK(fact("Ended") == "after its last step");  // Log has written "end" before
  CHECK(page_data::has(fact("Recipe").get<std::string>(), "Optimize<AdamW>"));
  CHECK(fact("Device") == "cpu");
  CHECK(!page_data::figure(page, "best validation loss").is_null());
  CHECK(page_data::chart(page, "Validation loss").is_null());
}

TEST_CASE("a preempted run has a report too, and a resumed one has each event once") {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path(), .dies_at = 10};
  CHECK(run(job, Optimizer{}, Saves{}, Log<Every<1>>{}, HtmlReport<>{}).died);
  CHECK_FALSE(std::filesystem::exists(folder / "report.html"));  // a kill leaves no time for one
  std::stop_source asked;
  asked.request_stop();
  {
    frugal::Trainer trainer{
        std::make_shared<Mlp>(job.shape),
        frugal::CrossEntropy{},
        frugal::Settings{.run_dir = job.folder, .epochs = 3, .seed = 7, .stop = asked.get_token()},
        Optimizer{},
        Saves{},
        Log<Every<1>>{},
        HtmlReport<>{}};
    frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
    frugal::TensorDataset valid(samples(15, 92), {.batch = 4});
    CHECK(trainer.fit(train, valid).preempted);
  }
  CHECK(text_at(folder / "report.html").find("resume") != std::string::npos);
  CHECK_FALSE(
      run({.folder = folder.path()}, Optimizer{}, Saves{}, Log<Every<1>>{}, HtmlReport<>{}).died);
  std::string const html = text_at(folder / "report.html");
  CHECK(html.find("2 resumes repeated") != html.npos);
  CHECK(count(text_at(folder / "metrics.jsonl"), R"({"event":"recipe")") == 1);
}

TEST_CASE(
    "a report that cannot be written is a warning, and the weights are those of any other run") {
  TemporaryFolder const folder;
  std::ofstream(folder / "file") << "x";
  auto const with = run({.folder = folder / "with"}, Optimizer{}, Log<Every<1>>{},
                        HtmlReport<>{.path = folder / "file" / "report.html"});
  auto const without = run({.folder = folder / "without"}, Optimizer{}, Log<Every<1>>{});
  CHECK(advises(with.report, "HtmlReport: there is no report: "));
  CHECK(same_bits(with.tensors, without.tensors));
}

TEST_CASE("a log elsewhere is a warning, not an error") {
  TemporaryFolder const folder;
  auto const report = run({.folder = folder / "run"}, Optimizer{},
                          Log<Every<1>>{.path = folder / "elsewhere.jsonl"}, HtmlReport<>{})
                          .report;
  CHECK(advises(report, "HtmlReport: there is no report: "));
}

TEST_CASE("without a run directory it is refused") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(run({}, Optimizer{}, Log<Every<1>>{.path = folder / "log.jsonl"}, HtmlReport<>{}),
                  frugal::SettingsError);
}

}  // namespace frugal_test::policy_html_report
