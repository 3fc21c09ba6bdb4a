// SPDX-License-Identifier: Apache-2.0
// Shapes: N boxes.
#include <doctest/doctest.h>

#include <frugal/metrics/mean_average_precision.hpp>

#include "cases.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::metrics_mean_average_precision {

using namespace frugal_test::metrics;

/// Predictions and targets of each image.
struct Images {
  std::vector<Detections> predicted, targets;
  std::size_t size() const { return targets.size(); }
};

Images images_of(Json const& which) {
  Images all;
  auto const numbers = [](Json const& list, at::ScalarType type) {
    return at::tensor(list.get<std::vector<double>>(), at::kDouble).to(type);
  };
  auto const boxes = [](Json const& list) {
    std::vector<double> flat;
    for (Json const& box : list) {
      for (Json const& each : box) flat.push_back(each);
    }
    return at::tensor(flat, at::kDouble).view({-1, 4}).to(at::kFloat);
  };
  for (Json const& image : which.at("images")) {
    all.predicted.push_back({.boxes = boxes(image.at("predicted")),
                             .scores = numbers(image.at("scores"), at::kFloat),
                             .labels = numbers(image.at("guesses"), at::kLong)});
    all.targets.push_back({.boxes = boxes(image.at("boxes")),
                           .labels = numbers(image.at("labels"), at::kLong),
                           .crowd = numbers(image.at("crowd"), at::kBool)});
  }
  return all;
}

using Map = MeanAveragePrecision;

/// An image at a time.
void add_images(Map& metric, Images const& all, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) metric.add(all.predicted[i], all.targets[i]);
}

/// As Validate adds them: batches of 2, 3, 2, 3, ... images, packed.
void add_batches(Map& metric, Images const& all, std::size_t begin, std::size_t end) {
  for (std::size_t at = begin, size = 2; at < end; at += std::exchange(size, 5 - size)) {
    auto const part = [&](std::vector<Detections> const& whole) {
      std::size_t const last = std::min(at + size, end);
      return std::vector<Detections>(whole.begin() + static_cast<std::ptrdiff_t>(at),
                                     whole.begin() + static_cast<std::ptrdiff_t>(last));
    };
    metrics::add(metric, pack_predictions(part(all.predicted)), pack_targets(part(all.targets)));
  }
}

/// What two processes come to: each gets the rows of both.
Map gathered(Map one, Map other) {
  std::vector<at::Tensor> rows;
  other.gather([&](at::Tensor const& part) {
    rows.push_back(part);
    return part;
  });
  std::size_t at = 0;
  one.gather([&](at::Tensor const& part) { return at::cat({part, rows.at(at++)}); });
  return one;
}

TEST_CASE("mean average precision is that of pycocotools, alone and in batches") {
  int compared = 0;
  Json const file = reference("detection.json");
  for (Json const& which : file.at("cases")) {
    CAPTURE(which.at("name").get<std::string>());
    Images const all = images_of(which);
    std::size_t const count = all.size(), middle = count / 3;
    Map alone, batches, first, second;
    add_images(alone, all, 0, count);
    add_batches(batches, all, 0, count);
    add_batches(first, all, 0, middle);
    add_images(second, all, middle, count);
    Map const both = gathered(first, second);
    Map continued = resumed(first);
    add_batches(continued, all, middle, count);
    for (Map const& metric : {alone, batches, both, continued}) {
      Metrics const found = metric.result();
      for (char const* name : {"map", "map_50", "map_75", "mar_100"}) {
        CHECK(found[name] == doctest::Approx(which.at(name).get<double>()).epsilon(1e-9));
      }
      Json const& wanted = which.at("of_classes");
      at::Tensor const table = found.table("map");
      REQUIRE(table.size(0) == static_cast<std::int64_t>(wanted.size()));
      for (std::size_t k = 0; k < wanted.size(); ++k) {
        at::Tensor const row = table[static_cast<std::int64_t>(k)];
        CHECK(row[0].item<double>() == wanted[k][0].get<double>());
        CHECK(row[1].item<double>() == doctest::Approx(wanted[k][1].get<double>()).epsilon(1e-9));
      }
      ++compared;
    }
  }
  CHECK(compared == 36);
}

Detections one_box(double score, at::Tensor const& box = at::tensor({0.0, 0.0, 8.0, 8.0})) {
  return {.boxes = box.view({1, 4}), .scores = at::tensor({score}), .labels = at::tensor({1})};
}
Detections target_of(Detections box) {
  box.scores = at::Tensor();
  return box;
}

TEST_CASE("no target at all is NaN with a reason, and a target without a prediction is 0") {
  Map metric;
  CHECK(std::isnan(metric.result()["map"]));
  metric.add(one_box(0.5), {});
  CHECK(std::isnan(metric.result()["map_50"]));
  CHECK_FALSE(metric.result().has_table("map"));
  CHECK(says(metric.warning(), "no target has a box"));
  metric.add({}, target_of(one_box(0)));
  CHECK(metric.result()["map"] == 0);
}

TEST_CASE("a prediction that is NaN makes it NaN, with a reason; padding may be anything") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  Map metric;
  metric.add(one_box(nan), target_of(one_box(0)));
  CHECK(std::isnan(metric.result()["map"]));
  CHECK(says(metric.warning(), "1 predicted boxes have a coordinate or score that is NaN"));
  Map packed;
  at::Tensor const rows = at::full({1, 2, 6}, nan);
  rows[0][0].copy_(at::tensor({0.0, 0.0, 8.0, 8.0, 0.5, 1.0}));
  rows[0][1][5].fill_(-100);
  metrics::add(packed, rows, at::tensor({0.0, 0.0, 8.0, 8.0, 1.0}).view({1, 1, 5}));
  CHECK(packed.result()["map"] == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("what is added is not changed behind its back, and copies are independent") {
  Map metric;
  at::Tensor const rows = at::tensor({0.0, 0.0, 8.0, 8.0, 0.5, 1.0}).view({1, 1, 6});
  at::Tensor const target = at::tensor({0.0, 0.0, 8.0, 8.0, 1.0}).view({1, 1, 5});
  metrics::add(metric, rows, target);
  Map copy = metric;
  rows.zero_();
  target.zero_();
  copy.add({}, target_of(one_box(0)));
  CHECK(metric.result()["map"] == doctest::Approx(1).epsilon(1e-12));
  CHECK(copy.result()["map"] == doctest::Approx(51.0 / 101).epsilon(1e-12));
}

TEST_CASE("what is no detection is refused") {
  auto const refused = [](Detections const& predicted, Detections const& target) {
    try {
      Map metric;
      metric.add(predicted, target);
      metric.result();
    } catch (MetricError const& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  Detections const target = target_of(one_box(0));
  CHECK(says(refused(target, target), "these are no predictions"));
  CHECK(says(refused(one_box(1), one_box(1)), "these are no targets"));
  Detections whole = one_box(1);
  whole.boxes = whole.boxes.to(at::kLong);
  CHECK(says(refused(whole, target), "boxes are [1, 4] Long"));
  Detections more = one_box(1);
  more.labels = at::tensor({1, 2});
  CHECK(says(refused(more, target), "labels [2] Int"));
  Detections negative = target;
  negative.labels = at::tensor({-1});
  CHECK(says(refused(one_box(1), negative), "names no class (metric map): it is -1"));
  CHECK(says(refused(one_box(1), target_of(one_box(0, at::tensor({8.0, 0.0, 4.0, 8.0})))),
             "a target is no box"));
  CHECK(says(refusal<Map>(at::zeros({1, 2, 6}, at::kHalf), at::zeros({1, 2, 5})),
             "both Float or Double"));
  CHECK(says(refusal<Map>(at::zeros({1, 2, 5}), at::zeros({1, 2, 5})), "output is [1, 2, 5]"));
  CHECK(says(refusal<Map>(at::full({1, 1, 6}, 0.5), at::zeros({1, 0, 5})), "it is 0.5"));
}

}  // namespace frugal_test::metrics_mean_average_precision
