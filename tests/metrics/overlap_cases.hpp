// SPDX-License-Identifier: Apache-2.0
// What IoU and Dice have in common, over the sets of tests/reference/segmentation.json.
#pragma once

#include <doctest/doctest.h>

#include <frugal/metrics/ignore_index.hpp>

#include "cases.hpp"

#include <cmath>
#include <limits>
#include <string>

namespace frugal_test::metrics {

/// Every way of a metric with several numbers: from ragged batches, across a resume, of two processes.
template <class M>
std::vector<Metrics> every_result(Set const& set) {
  std::int64_t const count = set.output.size(0), middle = count / 3;
  M first = resumed(over<M>(set, 0, middle));
  M const copy = first;
  for (std::int64_t i = middle; i < count; ++i) {
    add(first, set.output.narrow(0, i, 1), set.target.narrow(0, i, 1));
  }
  return {over<M>(set).result(), first.result(),
          together(copy, over<M>(set, middle, count)).result()};
}

template <class M>
int overlaps_equal_reference(char const* cases) {
  int compared = 0;
  std::string const name(M::name);
  Json const file = reference("segmentation.json");
  for (Json const& which : file.at(cases)) {
    CAPTURE(which.at("name").get<std::string>());
    for (Metrics const& found : every_result<M>(set_in(which, at::kLong))) {
      CHECK(found[name] == doctest::Approx(which.at(name).get<double>()).epsilon(1e-12));
      Json const& wanted = which.at(name + "_of_classes");
      at::Tensor const table = found.table(name);
      REQUIRE(table.numel() == static_cast<std::int64_t>(wanted.size()));
      for (std::size_t c = 0; c < wanted.size(); ++c) {
        double const here = table[static_cast<std::int64_t>(c)].item<double>();
        if (wanted[c].is_null()) {
          CHECK(std::isnan(here));
        } else {
          CHECK(here == doctest::Approx(wanted[c].get<double>()).epsilon(1e-12));
        }
      }
      ++compared;
    }
  }
  return compared;
}

/// Labels of class 0 are left out, and so is the class, although it is predicted.
template <class M>
void leaves_a_class_out() {
  std::string const name(M::name);
  Json const file = reference("segmentation.json");
  for (Json const& which : file.at("classes")) {
    CAPTURE(which.at("name").get<std::string>());
    Set const set = set_in(which, at::kLong);
    for (Metrics const& found : every_result<IgnoreIndex<0, M>>(set)) {
      CHECK(found[name] ==
            doctest::Approx(which.at(name + "_without_0").get<double>()).epsilon(1e-12));
      CHECK(std::isnan(found.table(name)[0].template item<double>()));
    }
  }
}

template <class M>
void nothing_and_nan() {
  std::string const name(M::name);
  CHECK(std::isnan(M().result()[name]));
  Metrics const none =
      over<M>({at::ones({2, 3}), at::full({2}, ignored_label, at::kLong)}).result();
  CHECK(std::isnan(none[name]));
  CHECK_FALSE(none.has_table(name));
  double const nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(over<M>({at::full({4, 3}, nan), at::tensor({0, 1, 2, 2})}).result()[name] == 0);
}

template <class M>
void other_types() {
  std::string const name(M::name);
  Json const file = reference("segmentation.json");
  Set const set = set_in(case_named(file.at("classes"), "ignored pixels"), at::kLong);
  at::Tensor const half = set.output.to(at::kHalf), wide = half.to(at::kFloat);
  at::Tensor const brain = set.output.to(at::kBFloat16);
  double const one = over<M>({wide, set.target}).result()[name];
  CHECK(over<M>({half, set.target}).result()[name] == one);
  CHECK(over<M>({brain, set.target}).result()[name] ==
        over<M>({brain.to(at::kFloat), set.target}).result()[name]);
  at::Tensor const other = set.target.masked_fill(set.target.eq(ignored_label), 255);
  CHECK(over<IgnoreIndex<255, M>>({wide, other.to(at::kByte)}).result()[name] == one);
}

}  // namespace frugal_test::metrics
