// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <pty.h>
#include <unistd.h>

#include <frugal/base/terminal.hpp>
#include <frugal/report/progress/bar.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>

namespace frugal_test::watch_terminal {

using namespace frugal::watch;

TEST_CASE("colors need a TERM that has them, and NO_COLOR unset or empty") {
  CHECK(wants_colors("xterm-256color", nullptr));
  CHECK(wants_colors("xterm", ""));
  CHECK_FALSE(wants_colors("xterm", "1"));
  CHECK_FALSE(wants_colors("xterm", "0"));  // no-color.org: whatever its value
  CHECK_FALSE(wants_colors("dumb", nullptr));
  CHECK_FALSE(wants_colors("", nullptr));
  CHECK_FALSE(wants_colors(nullptr, nullptr));
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

TEST_CASE(
    "lines are redrawn on a terminal that has a name, and not in a CI job's log or a notebook") {
  int ours = -1;
  int theirs = -1;
  REQUIRE(::openpty(&ours, &theirs, nullptr, nullptr, nullptr) == 0);
  std::FILE* const terminal = ::fdopen(theirs, "w");
  CHECK(redraws(terminal, "xterm", nullptr, nullptr));
  CHECK_FALSE(redraws(terminal, "dumb", nullptr, nullptr));
  CHECK_FALSE(redraws(terminal, "", nullptr, nullptr));
  CHECK_FALSE(redraws(terminal, nullptr, nullptr, nullptr));
  for (char const* const on : {"true", "1", "True", "woodpecker"}) {
    CHECK_FALSE(redraws(terminal, "xterm", on, nullptr));
  }
  for (char const* const off : {"", "0", "false"}) CHECK(redraws(terminal, "xterm", off, nullptr));
  CHECK_FALSE(redraws(terminal, "xterm-color", nullptr, "1936"));
  std::fclose(terminal);
  ::close(ours);
}

TEST_CASE("a text is in the file when the call returns") {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  CHECK(write_text(file, "one\ntwo"));
  std::array<char, 16> text{};
  CHECK(::pread(::fileno(file), text.data(), text.size(), 0) == 7);
  CHECK(std::string(text.data()) == "one\ntwo");
  std::fclose(file);
}

TEST_CASE("a full disk is a failure with its reason") {
  std::FILE* const full = std::fopen("/dev/full", "w");
  REQUIRE(full != nullptr);
  CHECK_FALSE(write_text(full, "text"));
  CHECK(errno == ENOSPC);
  std::fclose(full);
}

TEST_CASE("a pipe without a reader is a failure, of any size of text, and no signal") {
  std::signal(SIGPIPE, SIG_DFL);  // which ends this program
  for (bool const buffered : {true, false}) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    std::FILE* const broken = ::fdopen(ends[1], "w");
    if (!buffered) std::setvbuf(broken, nullptr, _IONBF, 0);
    CHECK(write_text(broken, "a reader takes this"));
    ::close(ends[0]);
    for (std::size_t const size : {1U, 100'000U}) {
      CHECK_FALSE(write_text(broken, std::string(size, 'x')));
      CHECK(errno == EPIPE);
    }
    print("a line", broken);
    Display display(broken, false);
    display.draw({{"bar"}});
    display.end();
    std::fclose(broken);  // nothing is left in it to be written
  }
}

}  // namespace frugal_test::watch_terminal
