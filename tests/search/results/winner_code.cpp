// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/results/winner_code.hpp>

#include "support/search_synthetic.hpp"

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::search_winner_code {

using frugal::SearchResults;
using frugal::SearchTrial;
using frugal::winner_code;
using frugal::WinnerCode;

bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

/// One trial, complete.
SearchResults one(std::vector<frugal::SearchedSetting> settings,
                  std::vector<std::optional<double>> values) {
  SearchResults of{.domain = {.recipes = {"AdamW + BF16"}, .settings = std::move(settings)},
                   .rungs = {{9000}}};
  SearchTrial trial{.candidate = {.recipe = 0, .values = std::move(values)},
                    .seed = 5,
                    .state = frugal::TrialState::complete};
  trial.rungs.push_back({.steps = 9000, .samples = 1, .seconds = 1, .values = {0.1234}});
  of.history.trials = {trial};
  of.winner = 0;
  return of;
}

SearchResults usual() {
  return one({{.name = "lr", .values = frugal::LogUniform{1e-4, 1}},
              {.name = "width", .values = frugal::Int{16, 256, 16, false}},
              {.name = "smoothing", .values = frugal::Uniform{0, 1}},
              {.name = "norm", .values = frugal::Choice{{"none", "layer"}}},
              {.name = "unknown", .values = frugal::Uniform{0, 100}}},
             {0.0031622776601683794, 128.0, 1.0, 1.0, 1e-7});
}

WinnerCode places() {
  return {.recipe_type = "fr::Recipe<fr::AdamW, fr::BF16>",
          .settings = {
              {.setting = "lr", .place = "trainer.policy<fr::kinds::optimizer>()", .member = "lr"},
              {.setting = "width", .place = "architecture", .member = "hidden"},
              {.setting = "smoothing", .place = "trainer.objective()"},
              {.setting = "norm",
               .place = "architecture",
               .expressions = {"Norm::none", "Norm::layer"}}}};
}

TEST_CASE("the recipe and each setting are lines to paste") {
  CHECK(winner_code(usual(), places()) ==
        "// Trial 0: AdamW + BF16, loss 0.1234, after 9000 steps, seed 5.\n"
        "using Winner = fr::Recipe<fr::AdamW, fr::BF16>;\n"
        "trainer.policy<fr::kinds::optimizer>().lr = 0.0031622776601683794;\n"
        "net.hidden = 128;\n"
        "trainer.objective().smoothing = 1.0;\n"
        "net.norm = Norm::layer;\n"
        "// unknown = 1e-07: set it where your program has it.\n");
  WinnerCode code = places();
  code.architecture = "model";
  CHECK(has(winner_code(usual(), code), "model.hidden = 128;\n"));
}

TEST_CASE("without types and places there are comments with the values") {
  std::string const text = winner_code(usual(), {});
  CHECK(has(text, "// The type of the recipe 'AdamW + BF16' is not known.\n"));
  CHECK(has(text, "// lr = 0.0031622776601683794: set it"));
  CHECK(has(text, "// norm = \"layer\": set it"));
  CHECK(!has(text, ";"));
}

TEST_CASE("digits read back as the same number") {
  for (double const value :
       {0.1, 1.0 / 3, 5e-324, 1e300, 123456789.0, 0.0, -2.5, std::numeric_limits<double>::max()}) {
    SearchResults const of = one({{.name = "x", .values = frugal::Uniform{-1e301, 1e301}}},
                                 {value > 1e301 ? 1e301 : value});
    std::string const text = winner_code(of, {.settings = {{.setting = "x", .place = "it"}}});
    std::size_t const at = text.find("it.x = ");
    REQUIRE(at != std::string::npos);
    std::string const digits = text.substr(at + 7, text.find(';', at) - at - 7);
    CHECK(digits.find_first_of(".e") != std::string::npos);  // a double, and no int
    CHECK(std::strtod(digits.c_str(), nullptr) == *of.history.trials[0].candidate.values[0]);
  }
}

TEST_CASE(
    "names are texts unless there are expressions, and no text leaves its literal or comment") {
  SearchResults of = one({{.name = "norm", .values = frugal::Choice{{"a\"b\\c\n1", "x"}}}}, {0.0});
  of.domain.recipes = {"two\nlines\\"};
  WinnerCode code{.settings = {{.setting = "norm", .place = "it"}}};
  std::string const text = winner_code(of, code);
  CHECK(has(text, "it.norm = \"a\\\"b\\\\c\\0121\";\n"));
  CHECK(has(text, "// Trial 0: two lines , loss"));
  CHECK(has(text, "// The type of the recipe 'two lines ' is not known.\n"));
  code.settings[0].expressions = {"A"};
  CHECK_THROWS_AS(winner_code(of, code), frugal::SettingsError);
}

TEST_CASE("a setting that a program keeps in several places is set in each") {
  SearchResults const of = one({{.name = "width", .values = frugal::Int{1, 64}}}, {32.0});
  WinnerCode const code{
      .settings = {{.setting = "width", .place = "architecture", .member = "encoder"},
                   {.setting = "width", .place = "architecture", .member = "decoder"},
                   {.setting = "width", .place = "trainer.objective()", .member = "width"}},
      .architecture = "shape"};
  std::string const text = winner_code(of, code);
  CHECK(has(text, "shape.encoder = 32;\nshape.decoder = 32;\ntrainer.objective().width = 32;\n"));
}

TEST_CASE("settings that the recipe does not have are left out, and repeats give a mean") {
  SearchResults const of = synthetic::search(64);
  REQUIRE(of.winner);
  std::string const text = winner_code(of, {});
  CHECK(has(text, " over 3 other seeds)"));
  for (std::size_t i = 0; i < of.history.trials.size(); ++i) {
    bool const sgd = of.history.trials[i].candidate.recipe == 1;
    CHECK(has(winner_code(of, {}, i), "momentum") == sgd);
  }
}

TEST_CASE("without a winner there is a comment, and another trial may be asked for") {
  SearchResults const of = synthetic::search(4, 1, true);
  CHECK(winner_code(of, {}) == "// No trial is complete: there is no winner.\n");
  CHECK(has(winner_code(of, {}, 2), "// Trial 2: "));
  CHECK_THROWS_AS(winner_code(of, {}, 4), frugal::SettingsError);
}

}  // namespace frugal_test::search_winner_code
