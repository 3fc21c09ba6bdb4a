// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/trials/candidate.hpp>

#include <string>

namespace frugal_test::search_candidate {

using namespace frugal;

std::string refusal(SearchDomain const& domain) {
  try {
    domain.require();
  } catch (SettingsError const& error) {
    return error.what();
  }
  return {};
}

SearchDomain domain() {
  return {.recipes = {"a", "b"},
          .settings = {{.name = "lr", .values = LogUniform{1e-3, 1}, .recipes = {}},
                       {.name = "width", .values = Int{2, 8, 2}, .recipes = {1}}}};
}

TEST_CASE("a candidate has a value exactly for the settings of its recipe") {
  CHECK(refusal(domain()).empty());
  CHECK(is_candidate_of(domain(), {.recipe = 0, .values = {0.5, std::nullopt}}));
  CHECK(is_candidate_of(domain(), {.recipe = 1, .values = {0.5, 4.0}}));
  CHECK(!is_candidate_of(domain(), {.recipe = 0, .values = {0.5, 4.0}}));
  CHECK(!is_candidate_of(domain(), {.recipe = 1, .values = {0.5, std::nullopt}}));
  CHECK(!is_candidate_of(domain(), {.recipe = 1, .values = {0.5, 3.0}}));
  CHECK(!is_candidate_of(domain(), {.recipe = 1, .values = {5.0, 4.0}}));
  CHECK(!is_candidate_of(domain(), {.recipe = 2, .values = {0.5, std::nullopt}}));
  CHECK(!is_candidate_of(domain(), {.recipe = 0, .values = {0.5}}));
}

TEST_CASE("a space without recipes, with a name twice or with an empty range is refused") {
  SearchDomain none = domain();
  none.recipes.clear();
  CHECK(refusal(none).find("the search space is empty") != std::string::npos);
  SearchDomain twice = domain();
  twice.settings[1].name = "lr";
  CHECK(refusal(twice).find("two settings have the name 'lr'") != std::string::npos);
  SearchDomain reserved = domain();
  reserved.settings[0].name = "recipe";
  CHECK(refusal(reserved).find("the name 'recipe'") != std::string::npos);
  SearchDomain empty = domain();
  empty.settings[0].values = LogUniform{1, 1e-3};
  CHECK(refusal(empty).find("the setting 'lr' has no values") != std::string::npos);
  SearchDomain beyond = domain();
  beyond.settings[1].recipes = {2};
  CHECK(refusal(beyond).find("a recipe that does not exist") != std::string::npos);
}

}  // namespace frugal_test::search_candidate
