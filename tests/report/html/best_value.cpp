// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/best_value.hpp>

#include <string>

namespace frugal_test::html_best_value {

using namespace frugal::html;

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

}  // namespace frugal_test::html_best_value
