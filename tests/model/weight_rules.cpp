// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/model/weight_rules.hpp>

#include <string>
#include <vector>

namespace frugal_test::model_weight_rules {

using frugal::WeightRules;
using frugal::detail::name_in_file;
using frugal::detail::require_rules;
using frugal::detail::texts_of_stars;
using Texts = std::vector<std::string>;

TEST_CASE("each star stands for a text, as short as possible") {
  CHECK(texts_of_stars("a.b", "a.b") == Texts{});
  CHECK_FALSE(texts_of_stars("a.b", "a.bc"));
  CHECK(texts_of_stars("*", "a.b") == Texts{"a.b"});
  CHECK(texts_of_stars("a*", "a") == Texts{""});
  CHECK(texts_of_stars("*.weight", "a.weight.weight") == Texts{"a.weight"});
  CHECK(texts_of_stars("layer.*.*", "layer.1.self.query") == Texts{"1", "self.query"});
  CHECK(texts_of_stars("*.*.b", "x.a.b.b") == Texts{"x", "a.b"});
  CHECK_FALSE(texts_of_stars("layer.*.out", "layer.1.in"));
}

TEST_CASE("the first rename whose pattern fits a name of the module gives its name in the file") {
  WeightRules const rules{.rename = {{"encoder.layer.5.*", "layers.1.*"},
                                     {"encoder.layer.*.attention.self.*", "layers.*.attention.*"},
                                     {"encoder.layer.*", "layers.*"}}};
  CHECK(name_in_file(rules, "layers.1.attention.query.bias") ==
        "encoder.layer.5.attention.query.bias");
  CHECK(name_in_file(rules, "layers.0.attention.query.bias") ==
        "encoder.layer.0.attention.self.query.bias");
  CHECK(name_in_file(rules, "layers.0.output.weight") == "encoder.layer.0.output.weight");
  CHECK(name_in_file(rules, "pooler.weight") == "pooler.weight");
  // A prefix is added where the file has it, and left out where the module has it.
  CHECK(name_in_file({.rename = {{"bert.*", "*"}}}, "a.weight") == "bert.a.weight");
  CHECK(name_in_file({.rename = {{"*", "model.*"}}}, "model.a.weight") == "a.weight");
}

TEST_CASE(
    "rules that are of no tensor of the module are refused, and so are stars without a text") {
  Texts const names{"first.weight", "head.weight"};
  auto const refuses = [&](WeightRules const& rules, char const* why) {
    CHECK_THROWS_WITH_AS(require_rules(rules, names), doctest::Contains(why),
                         frugal::SettingsError);
  };
  CHECK_NOTHROW(require_rules({.rename = {{"a.*", "first.*"}},
                               .parts = {"head.*"},
                               .transpose = {"*.weight"},
                               .resize = {"head.weight"},
                               .allow_missing = {"nothing"},
                               .allow_unexpected = {"nothing"},
                               .allow_misshapen = {"nothing"}},
                              names));
  refuses({.rename = {{"a.*.b", "first.*.*"}}}, "have different numbers of stars");
  refuses({.rename = {{"a.*", "frist.*"}}}, "WeightRules::rename");
  refuses({.parts = {"encoder.*"}}, "the pattern 'encoder.*' matches nothing (WeightRules::parts)");
  refuses({.transpose = {"encoder.*"}}, "WeightRules::transpose");
  refuses({.resize = {"encoder.*"}}, "WeightRules::resize");
}

}  // namespace frugal_test::model_weight_rules
