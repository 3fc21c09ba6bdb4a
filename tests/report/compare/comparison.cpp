// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/files.hpp"
#include "support/locales.hpp"

#include <doctest/doctest.h>

#include <frugal/report/compare/comparison.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace frugal_test::compare_order {

using frugal::detail::round_orders;
using Order = std::vector<std::size_t>;

TEST_CASE("every round has every recipe once, and a seed gives one order") {
  auto const orders = round_orders(8, 5, 3);
  REQUIRE(orders.size() == 5);
  for (Order order : orders) {
    std::sort(order.begin(), order.end());
    CHECK(order == Order{0, 1, 2, 3, 4, 5, 6, 7});
  }
  CHECK(orders == round_orders(8, 5, 3));
  CHECK(orders != round_orders(8, 5, 4));
}

TEST_CASE("in two rounds the places of each recipe have one sum: a steady drift cancels") {
  for (std::size_t const count : {2U, 3U, 8U}) {
    auto const orders = round_orders(count, 6, 1);
    for (std::size_t pair = 0; pair < orders.size(); pair += 2) {
      std::set<std::ptrdiff_t> sums;
      for (std::size_t recipe = 0; recipe < count; ++recipe) {
        std::ptrdiff_t sum = 0;
        for (Order const& order : {orders[pair], orders[pair + 1]}) {
          sum += std::find(order.begin(), order.end(), recipe) - order.begin();
        }
        sums.insert(sum);
      }
      CHECK(sums == std::set<std::ptrdiff_t>{static_cast<std::ptrdiff_t>(count) - 1});
    }
  }
}

TEST_CASE("a recipe does not always follow the same other one") {
  auto const orders = round_orders(4, 20, 1);
  std::set<std::size_t> before_first;
  for (Order const& order : orders) {
    auto const at = std::find(order.begin(), order.end(), 0U);
    if (at != order.begin()) before_first.insert(*(at - 1));
  }
  CHECK(before_first == std::set<std::size_t>{1, 2, 3});
}

TEST_CASE("no rounds and one recipe have their orders") {
  CHECK(round_orders(3, 0, 1).empty());
  CHECK(round_orders(1, 2, 1) == std::vector<Order>{{0}, {0}});
}

}  // namespace frugal_test::compare_order

namespace frugal_test::compare_comparison {

using namespace support;
namespace fr = frugal;
using nlohmann::json;

fr::Trial trial(std::size_t repeat, double step_ms, double to_target) {
  fr::Trial made{.repeat = repeat,
                 .seed = 1 + repeat,
                 .steps = 100,
                 .samples = 12800,
                 .seconds = to_target + 1,
                 .step_seconds = step_ms / 1e3,
                 .processor_seconds = 2 * step_ms / 1e3,
                 .peak_bytes = 3 << 20,
                 .metrics = {{"loss", 0.5}, {"accuracy", 0.8}},
                 .train_loss = 0.4,
                 .weights = repeat};
  made.reached = fr::Trial::Reached{80, 10240, to_target};
  return made;
}

fr::Comparison two_rows() {
  fr::Comparison made;
  made.rows = {
      {.name = "SGD", .trials = {trial(0, 10, 36), trial(1, 14, 72), trial(2, 12, 54)}},
      {.name = "SGD + BF16", .trials = {trial(0, 5, 18), trial(1, 7, 18), trial(2, 9, 36)}}};
  made.target = {.metric = "accuracy", .at_least = 0.8};
  made.dollars_per_hour = 10;
  made.repeats = 3;
  return made;
}

TEST_CASE("the median, the least and the greatest are those of numpy") {
  // numpy.median([3, 1, 2]) == 2.0; numpy.median([4, 1, 3, 2]) == 2.5
  CHECK(fr::Spread::of({3, 1, 2})->median == 2.0);
  CHECK(fr::Spread::of({4, 1, 3, 2})->median == 2.5);
  CHECK(fr::Spread::of({4, 1, 3, 2})->least == 1);
  CHECK(fr::Spread::of({4, 1, 3, 2})->most == 4);
  CHECK(fr::Spread::of({7})->median == 7);
  CHECK(fr::Spread::of({7})->count == 1);
  CHECK_FALSE(fr::Spread::of({}));
}

TEST_CASE("the table has warnings once, and says where losses are no measure of each other") {
  fr::Comparison found = two_rows();
  auto const text = [&] {
    std::ostringstream out;
    out << found;
    return out.str();
  };
  CHECK(text().find("arning") == std::string::npos);
  CHECK(text().find("not comparable") == std::string::npos);
  for (fr::Trial& each : found.rows[1].trials) each.warnings = {"too hot"};
  std::string const line = "Warning of 'SGD + BF16': too hot\n";
  std::size_t const at = text().find(line);
  REQUIRE(at != std::string::npos);
  CHECK(text().find(line, at + 1) == std::string::npos);
  for (fr::Trial& each : found.rows[1].trials) each.objective = "{0.1}";
  CHECK(text().find("The objectives of 'SGD + BF16' and of the rows above it have other members") !=
        std::string::npos);
}

TEST_CASE("a ratio is taken within a repeat, so that a drift between repeats cancels") {
  fr::Comparison const found = two_rows();
  // 5/10, 7/14, 9/12
  auto const ratio = found.step_ratio(found.rows[1]);
  REQUIRE(ratio);
  CHECK(ratio->median == doctest::Approx(0.5));
  CHECK(ratio->least == doctest::Approx(0.5));
  CHECK(ratio->most == doctest::Approx(0.75));
  CHECK(found.step_ratio(found.rows[0])->median == 1);
  // 18/36, 18/72, 36/54
  CHECK(found.paid_ratio(found.rows[1])->median == doctest::Approx(0.5));
  CHECK(found.paid_ratio(found.rows[1])->least == doctest::Approx(0.25));
}

TEST_CASE("dollars are seconds to the target times the price") {
  fr::Comparison const found = two_rows();
  // 54 s, 36 s and 72 s at 10 dollars an hour.
  CHECK(found.dollars(found.rows[0])->median == doctest::Approx(0.15));
  CHECK(found.dollars(found.rows[0])->least == doctest::Approx(0.10));
  CHECK(found.dollars(found.rows[0])->most == doctest::Approx(0.20));
  fr::Comparison whole = found;
  whole.target = {};
  CHECK(whole.dollars(whole.rows[0])->median == doctest::Approx(55 * 10.0 / 3600));
  whole.dollars_per_hour.reset();
  CHECK_FALSE(whole.dollars(whole.rows[0]));
}

TEST_CASE("one trial that misses the target leaves its recipe without a cost") {
  fr::Comparison found = two_rows();
  found.rows[1].trials[2].reached.reset();
  CHECK_FALSE(found.dollars(found.rows[1]));
  CHECK_FALSE(found.paid_ratio(found.rows[1]));
  CHECK(found.rows[1].samples_to_target()->count == 2);
  CHECK_THROWS_WITH_AS((void)found.levers_text(), doctest::Contains("2 of 3 runs reached"),
                       fr::TargetError);
}

TEST_CASE("the table is no wider than it may be, and has every cell") {
  std::ostringstream out;
  two_rows().print(out, 100);
  std::istringstream lines(out.str().substr(0, out.str().find("\nMedian")));
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  CHECK(widest <= 100);
  CHECK(widest > 80);
  for (char const* cell : {"12.00", "(10.00", "14.00)", "0.8000", "(0.1000", "0.2000)"}) {
    CAPTURE(cell);
    CHECK(out.str().find(cell) != std::string::npos);
  }
}

TEST_CASE("the table has medians with their range, and the ratios to the baseline") {
  std::ostringstream out;
  fr::Comparison found = two_rows();
  found.dropped.push_back({"SGD + Odd", "frugal: Odd is odd."});
  found.rows.push_back({.name = "SGD + Bad", .trials = {}, .error = "it broke"});
  found.print(out, 1000);
  std::string const text = out.str();
  CAPTURE(text);
  CHECK(text.find("12.00 (10.00 to 14.00)") != std::string::npos);
  CHECK(text.find("0.5000 (0.5000 to 0.7500)") != std::string::npos);
  CHECK(text.find("samples to accuracy >= 0.8") != std::string::npos);
  CHECK(text.find("0.1500 (0.1000 to 0.2000)") != std::string::npos);
  CHECK(text.find("ends in the same weights") != std::string::npos);
  CHECK(text.find("'SGD + Bad' failed: it broke") != std::string::npos);
  CHECK(text.find("'SGD + Odd' is not possible. frugal: Odd is odd.") != std::string::npos);
}

TEST_CASE("the JSON has the fields of Google Benchmark, and its aggregates") {
  json const all = json::parse(two_rows().json_text());
  for (char const* key : {"date", "host_name", "executable", "num_cpus", "caches", "load_avg",
                          "library_build_type"}) {
    CHECK(all.at("context").contains(key));
  }
  json const& rows = all.at("benchmarks");
  REQUIRE(rows.size() == 2 * (3 + 4));
  json const& first = rows[0];
  CHECK(first.at("name") == "SGD");
  CHECK(first.at("run_name") == "SGD");
  CHECK(first.at("run_type") == "iteration");
  CHECK(first.at("repetitions") == 3);
  CHECK(first.at("repetition_index") == 0);
  CHECK(first.at("iterations") == 100);
  CHECK(first.at("real_time") == doctest::Approx(10));
  CHECK(first.at("cpu_time") == doctest::Approx(20));
  CHECK(first.at("time_unit") == "ms");
  CHECK(first.at("samples_to_target") == 10240);
  CHECK(first.at("valid_accuracy") == 0.8);
  CHECK(first.at("dollars") == doctest::Approx(0.1));
  // numpy.mean, numpy.median and numpy.std(ddof=1) of 10, 14, 12.
  CHECK(rows[3].at("name") == "SGD_mean");
  CHECK(rows[3].at("run_type") == "aggregate");
  CHECK(rows[3].at("real_time") == doctest::Approx(12));
  CHECK(rows[4].at("aggregate_name") == "median");
  CHECK(rows[5].at("aggregate_name") == "stddev");
  CHECK(rows[5].at("real_time") == doctest::Approx(2));
  CHECK(rows[6].at("aggregate_name") == "cv");
  CHECK(rows[6].at("aggregate_unit") == "percentage");
  CHECK(rows[6].at("real_time") == doctest::Approx(2.0 / 12));
}

TEST_CASE("counts are integers in the JSON, however large") {
  fr::Comparison found = two_rows();
  found.rows[0].trials[0].steps = 100000;
  std::string const text = found.json_text();
  CHECK(text.find("\"iterations\": 100000,") != std::string::npos);
  CHECK(json::parse(text).at("benchmarks")[0].at("repetitions").is_number_unsigned());
}

TEST_CASE("what is not a number is null in the JSON, and any text is escaped") {
  fr::Comparison found = two_rows();
  found.rows[0].name = "a \"quoted\"\nname";
  found.rows[0].trials[0].train_loss = std::numeric_limits<double>::quiet_NaN();
  json const all = json::parse(found.json_text());
  CHECK(all.at("benchmarks")[0].at("name") == "a \"quoted\"\nname");
  CHECK(all.at("benchmarks")[0].at("train_loss").is_null());
}

TEST_CASE("a failed recipe is a benchmark with an error") {
  fr::Comparison found;
  found.rows = {{.name = "SGD", .trials = {}, .error = "no"}};
  found.repeats = 1;
  json const all = json::parse(found.json_text());
  CHECK(all.at("benchmarks")[0].at("error_occurred") == true);
  CHECK(all.at("benchmarks")[0].at("error_message") == "no");
  CHECK(all.at("benchmarks").size() == 1);
  CHECK(json::parse(fr::Comparison{}.json_text()).at("benchmarks").empty());
}

TEST_CASE("the waterfall has the total after each lever, and names what a row adds") {
  json const all = json::parse(two_rows().levers_text("A title"));
  CHECK(all.at("version") == 1);
  CHECK(all.at("currency") == "USD");
  CHECK(all.at("unit") == "USD");
  CHECK(all.at("title") == "A title");
  REQUIRE(all.at("steps").size() == 2);
  CHECK(all.at("steps")[0].at("name") == "SGD");
  CHECK(all.at("steps")[0].at("value") == doctest::Approx(0.15));
  CHECK(all.at("steps")[0].at("hours") == doctest::Approx(0.015));
  CHECK(all.at("steps")[1].at("name") == "+ BF16");
  CHECK(all.at("steps")[1].at("value") == doctest::Approx(0.05));
  fr::Comparison free_of_charge = two_rows();
  free_of_charge.dollars_per_hour.reset();
  json const hours = json::parse(free_of_charge.levers_text());
  CHECK(hours.at("unit") == "hours");
  CHECK(hours.at("steps")[0].at("value") == doctest::Approx(0.015));
  CHECK(hours.at("title") == "Cost to reach accuracy >= 0.8");
}

TEST_CASE(
    "a lever's name is what the recipe adds; one that replaces something has its whole name") {
  using fr::detail::lever_name;
  CHECK(lever_name("AdamW + BF16", "AdamW") == "+ BF16");
  CHECK(lever_name("AdamW + BF16 + Ema", "AdamW") == "+ BF16 + Ema");
  CHECK(lever_name("AdamW + Schedule<Warmup<2> + Cosine>", "AdamW") ==
        "+ Schedule<Warmup<2> + Cosine>");
  CHECK(lever_name("SGD", "AdamW") == "SGD");
  CHECK(lever_name("AdamW", "AdamW + BF16") == "AdamW");
  CHECK(lever_name("AdamW", "defaults") == "+ AdamW");
  CHECK(lever_name("AdamW (2)", "AdamW") == "AdamW (2)");
}

TEST_CASE("figures and files are the same in every locale") {
  fr::Comparison const found = two_rows();
  fr::TargetMetric const target{.metric = "accuracy", .at_least = 0.8125};
  auto const all = [&] {
    std::ostringstream out;
    out << found;
    std::string const file = found.json_text();
    return out.str() + file.substr(file.find("\"benchmarks\"")) +  // without its date
           found.levers_text() + target.text();
  };
  std::string const plain = all();
  CHECK(target.text() == "accuracy >= 0.8125");
  GroupedLocale const grouped;
  CHECK(all() == plain);
  CommaLocale const comma;
  if (comma.works()) CHECK(all() == plain);
}

TEST_CASE("both files are written and replaced, and a folder that is not there is an error") {
  TemporaryFolder const folder;
  fr::Comparison const found = two_rows();
  for (int i = 0; i < 2; ++i) {
    found.json(folder / "found.json");
    found.levers(folder / "levers.json", "once more");
  }
  std::ifstream file(folder / "levers.json");
  CHECK(json::parse(file).at("title") == "once more");
  CHECK(support::entries(folder.path()) == 2);
  CHECK_THROWS_AS(found.json(folder / "nowhere" / "found.json"), fr::StoreError);
}

}  // namespace frugal_test::compare_comparison
