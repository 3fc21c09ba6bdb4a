// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/trial_warnings.hpp>

#include <string>
#include <vector>

namespace frugal_test::search_trial_warnings {

using namespace frugal;
using frugal::detail::trial_warnings;

TEST_CASE("each warning is told once, with its trials, and not hundreds of them") {
  SearchHistory history{{{}, {.warnings = {"a", "b"}}, {.warnings = {"a"}}, {.warnings = {"a"}}}};
  CHECK(trial_warnings(history) ==
        std::vector<std::string>{"trial 1 and 2 others: a", "trial 1: b"});
  history.trials.push_back({.warnings = {"c"}});
  CHECK(trial_warnings(history, 1) ==
        std::vector<std::string>{"trial 1 and 2 others: a", "trials have 2 further warnings"});
  CHECK(trial_warnings({}).empty());
}

}  // namespace frugal_test::search_trial_warnings
