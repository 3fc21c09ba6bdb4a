// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/watch/terminal.hpp>

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
  CHECK_FALSE(redraws(file, "xterm"));
  CHECK_FALSE(redraws(nullptr, "xterm"));
  CHECK(terminal_size(file).columns == 80);
  CHECK(terminal_size(file).rows == 24);
  std::fclose(file);
}

}  // namespace frugal_test::watch_terminal
