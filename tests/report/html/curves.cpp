// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/curves.hpp>
#include <frugal/report/html/run_folder.hpp>

#include "report/html/run_files.hpp"
#include "support/page_data.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::html_curves {

using namespace run_files;
using namespace frugal::html;
using namespace page_data;

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

}  // namespace frugal_test::html_curves
