// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/run/check.hpp>

#include <sstream>
#include <vector>

namespace frugal_test::run_check {

using frugal::Check;

TEST_CASE("checks are printed one per line, and pass if each does") {
  std::vector<Check> checks{{"finite loss", true, "2.31, 2.29"}, {"set-up", false, "no folder"}};
  std::ostringstream out;
  frugal::print(out, checks);
  CHECK(out.str() == "dry run: pass  finite loss: 2.31, 2.29\ndry run: FAIL  set-up: no folder\n");
  CHECK_FALSE(frugal::all_passed(checks));
  checks.pop_back();
  CHECK(frugal::all_passed(checks));
}

TEST_CASE("no checks are no pass") { CHECK_FALSE(frugal::all_passed({})); }

}  // namespace frugal_test::run_check
