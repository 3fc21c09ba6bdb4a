// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/curves.hpp>
#include <frugal/report/html/run_folder.hpp>

#include "report/html/run_files.hpp"

#include <string>
#include <vector>

namespace frugal_test::html_curves {

using namespace run_files;
using namespace frugal::html;

RunFolder run_with(std::string const& fields) {
  RunLogReader reader;
  reader.feed(step(1, fields) + step(2, fields));
  return {.path = "run", .name = "run", .log = reader.finish()};
}
std::string page_of(std::vector<RunFolder> const& runs) {
  Page page;
  write_curves(page, runs);
  return page.text();
}
std::string const rate = R"(,"learning_rate":0.003,"lr_factor":0.5)",
                  factor = R"(,"lr_factor":0.25)";

TEST_CASE("the learning rate is drawn where the log has it, and its factor otherwise") {
  std::string const with = page_of({run_with(rate)});
  CHECK(count(with, "<h3>Learning rate</h3>") == 1);
  CHECK(has(with, "last <b>0.003</b>"));
  CHECK_FALSE(has(with, "lr_factor"));
  CHECK_FALSE(has(with, "factor of the schedule"));
  std::string const without = page_of({run_with(factor)});
  CHECK(count(without,
              "<h3>Learning rate</h3><span class=\"note\">factor of the schedule</span>") == 1);
  CHECK(has(without, "last <b>0.25</b>"));
  CHECK_FALSE(has(page_of({run_with("")}), "Learning rate"));
}

TEST_CASE("runs are compared by their factors if one of them has no learning rate") {
  std::string const mixed = page_of({run_with(rate), run_with(factor)});
  CHECK(count(mixed, "<h3>Learning rate</h3>") == 1);
  CHECK(has(mixed, "run <b>0.5</b>"));
  CHECK(has(mixed, "run <b>0.25</b>"));
  // A run without either does not matter.
  std::string const both = page_of({run_with(rate), run_with(rate), run_with("")});
  CHECK(count(both, "run <b>0.003</b>") == 2);
}

}  // namespace frugal_test::html_curves
