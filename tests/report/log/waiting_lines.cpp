// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/log/waiting_lines.hpp>

#include <string>

namespace frugal_test::policy_log_waiting_lines {

using frugal::detail::WaitingLines;

std::string line(std::string const& event, int step) {
  return R"({"event":")" + event + R"(","step":)" + std::to_string(step) + "}\n";
}

TEST_CASE("lines are kept whole, up to the most") {
  WaitingLines waiting;
  CHECK(waiting.empty());
  CHECK(waiting.add(line("step", 1), 30));
  CHECK_FALSE(waiting.add(line("step", 2), 30));
  CHECK(waiting.text() == line("step", 1));
  waiting.clear();
  CHECK(waiting.empty());
}

TEST_CASE("a return drops the lines that are written again, and keeps events") {
  WaitingLines waiting;
  std::string const saved = line("step", 5) + line("profile", 6);
  for (std::string const& each : {saved, line("step", 7), line("rollback", 8), line("epoch", 8)}) {
    REQUIRE(waiting.add(each, 1000));
  }
  waiting.go_back(saved);
  CHECK(waiting.text() == saved + line("rollback", 8));
}

TEST_CASE("a return repeats lines that were written meanwhile, and no event") {
  WaitingLines waiting;  // what was saved has been written since, behind the mark
  REQUIRE(waiting.add(line("step", 9) + line("notice", 9), 1000));
  waiting.go_back(line("step", 5) + line("profile", 6));
  CHECK(waiting.text() == line("step", 5) + line("notice", 9));
}

TEST_CASE("a resume has what waited when it was saved") {
  WaitingLines waiting;
  REQUIRE(waiting.add(line("begin", 0), 1000));
  waiting.resume(line("step", 5));
  CHECK(waiting.text() == line("step", 5));
}

}  // namespace frugal_test::policy_log_waiting_lines
