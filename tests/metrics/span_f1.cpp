// SPDX-License-Identifier: Apache-2.0
// Shapes: B sequences, C tags, T positions.
#include <doctest/doctest.h>

#include <frugal/metrics/ignore_index.hpp>
#include <frugal/metrics/span_f1.hpp>

#include "overlap_cases.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace frugal_test::metrics_span_f1 {

using namespace frugal_test::metrics;

using Iob2 = SpanF1<"O", "B-PER", "I-PER", "B-LOC", "I-LOC">;
using Iobes = SpanF1<"O", "B-PER", "I-PER", "E-PER", "S-PER", "B-LOC", "I-LOC", "E-LOC", "S-LOC">;

at::Tensor rows(Json const& lists) {
  std::vector<std::int64_t> all;
  for (Json const& row : lists) {
    for (Json const& each : row) all.push_back(each);
  }
  return at::tensor(all).view({static_cast<std::int64_t>(lists.size()), -1});
}

/// Logits [B, C, T] whose largest is that of the class.
at::Tensor logits_of(at::Tensor const& classes_BT, std::int64_t classes) {
  return at::one_hot(classes_BT, classes).transpose(1, 2).to(at::kFloat);
}

Set set_of(Json const& which) {
  return {
      logits_of(rows(which.at("predicted")), static_cast<std::int64_t>(which.at("tags").size())),
      rows(which.at("labels"))};
}

template <class M>
void equals_reference(Json const& which) {
  Json const& wanted = which.at("of_types");
  for (Metrics const& found : every_result<M>(set_of(which))) {
    for (char const* name : {"span_precision", "span_recall", "span_f1"}) {
      CHECK(found[name] == doctest::Approx(which.at(name).get<double>()).epsilon(1e-12));
    }
    at::Tensor const table = found.table("span_f1");
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      for (std::size_t score = 0; score < 3; ++score) {
        CHECK(
            table[static_cast<std::int64_t>(k)][static_cast<std::int64_t>(score)].item<double>() ==
            doctest::Approx(wanted[k][score].get<double>()).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("precision, recall and F1 of entities are those of seqeval") {
  int compared = 0;
  Json const file = reference("text_scores.json");
  for (Json const& which : file.at("spans")) {
    CAPTURE(which.at("name").get<std::string>());
    which.at("tags").size() == 5 ? equals_reference<Iob2>(which) : equals_reference<Iobes>(which);
    ++compared;
  }
  CHECK(compared == 9);
}

TEST_CASE("padding is left out, wherever it stands, with an ignored label of another value too") {
  Json const file = reference("text_scores.json");
  Json const& which = case_named(file.at("spans"), "spans");
  Set const set = set_of(which);
  double const one = which.at("span_f1");
  at::Tensor const padded_labels = at::cat({at::full({9, 2}, ignored_label, at::kLong), set.target,
                                            at::full({9, 3}, ignored_label, at::kLong)},
                                           1);
  at::Tensor const noise = table({9, 5, 5}, 5, 1);
  at::Tensor const padded = at::cat({noise.narrow(2, 0, 2), set.output, noise.narrow(2, 2, 3)}, 2);
  CHECK(over<Iob2>({padded, padded_labels}).result()["span_f1"] ==
        doctest::Approx(one).epsilon(1e-12));
  at::Tensor const other = padded_labels.masked_fill(padded_labels.eq(ignored_label), 77);
  CHECK(over<IgnoreIndex<77, Iob2>>({padded.to(at::kHalf), other.to(at::kByte)})
            .result()["span_f1"] == doctest::Approx(one).epsilon(1e-12));
}

TEST_CASE("a NaN logit predicts no entity, and nothing measured is NaN") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  at::Tensor const labels = at::tensor({1, 2, 0, 3}).view({1, 4});
  Metrics const diverged = over<Iob2>({at::full({1, 5, 4}, nan), labels}).result();
  CHECK(diverged["span_f1"] == 0);
  CHECK(diverged["span_recall"] == 0);
  CHECK(std::isnan(Iob2().result()["span_f1"]));
  CHECK(std::isnan(
      over<Iob2>({at::zeros({1, 5, 4}), at::full({1, 4}, -100, at::kLong)}).result()["span_f1"]));
  CHECK(std::isnan(
      over<Iob2>({at::zeros({2, 5, 0}), at::zeros({2, 0}, at::kLong)}).result()["span_recall"]));
}

TEST_CASE("what does not fit is refused with both") {
  CHECK(says(refusal<Iob2>(at::zeros({2, 4, 3}), at::zeros({2, 3}, at::kLong)),
             "5 tags, and the output has 4 classes"));
  CHECK(says(refusal<Iob2>(at::zeros({2, 5}), at::zeros({2}, at::kLong)),
             "output is [2, 5] Float, target is [2] Long"));
  CHECK(says(refusal<Iob2>(at::zeros({1, 5, 2}), at::tensor({5, -1}).view({1, 2})),
             "2 labels name no class"));
}

}  // namespace frugal_test::metrics_span_f1
