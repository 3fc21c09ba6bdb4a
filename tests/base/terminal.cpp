// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <pty.h>
#include <unistd.h>

#include <frugal/base/terminal.hpp>

#include <cstdio>

namespace frugal_test::watch_terminal {

using namespace frugal::watch;

TEST_CASE("colours need a TERM that has them, and NO_COLOR unset or empty") {
  CHECK(wants_colours("xterm-256color", nullptr));
  CHECK(wants_colours("xterm", ""));
  CHECK_FALSE(wants_colours("xterm", "1"));
  CHECK_FALSE(wants_colours("xterm", "0"));  // no-color.org: whatever its value
  CHECK_FALSE(wants_colours("dumb", nullptr));
  CHECK_FALSE(wants_colours("", nullptr));
  CHECK_FALSE(wants_colours(nullptr, nullptr));
}

TEST_CASE("a file is no terminal, and its size is the usual one") {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  CHECK_FALSE(redraws(file, "xterm", nullptr));
  CHECK_FALSE(redraws(nullptr, "xterm", nullptr));
  CHECK(terminal_size(file).columns == 80);
  CHECK(terminal_size(file).rows == 24);
  std::fclose(file);
}

TEST_CASE("lines are redrawn on a terminal that has a name, and not in a CI job's log") {
  int ours = -1;
  int theirs = -1;
  REQUIRE(::openpty(&ours, &theirs, nullptr, nullptr, nullptr) == 0);
  std::FILE* const terminal = ::fdopen(theirs, "w");
  CHECK(redraws(terminal, "xterm", nullptr));
  CHECK_FALSE(redraws(terminal, "dumb", nullptr));
  CHECK_FALSE(redraws(terminal, "", nullptr));
  CHECK_FALSE(redraws(terminal, nullptr, nullptr));
  for (char const* const on : {"true", "1", "True", "woodpecker"}) {
    CHECK_FALSE(redraws(terminal, "xterm", on));
  }
  for (char const* const off : {"", "0", "false"}) CHECK(redraws(terminal, "xterm", off));
  std::fclose(terminal);
  ::close(ours);
}

}  // namespace frugal_test::watch_terminal
