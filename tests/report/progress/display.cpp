// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <frugal/report/progress/display.hpp>

#include <cstdio>
#include <string>

// tests/interop/progress.py shows the same to a terminal emulator.
namespace frugal_test::watch_display {

using namespace frugal::watch;

/// A pseudo-terminal and what has been written to it.
class Terminal {
 public:
  Terminal(unsigned short rows, unsigned short columns) {
    winsize size{};
    size.ws_row = rows;
    size.ws_col = columns;
    REQUIRE(::openpty(&ours_, &theirs_, nullptr, nullptr, &size) == 0);
    file_ = ::fdopen(theirs_, "w");
  }
  Terminal(Terminal const&) = delete;
  Terminal& operator=(Terminal const&) = delete;
  ~Terminal() {
    std::fclose(file_);
    ::close(ours_);
  }
  std::FILE* file() { return file_; }
  void resize(unsigned short rows, unsigned short columns) {
    winsize size{};
    size.ws_row = rows;
    size.ws_col = columns;
    REQUIRE(::ioctl(ours_, TIOCSWINSZ, &size) == 0);
  }
  /// What was written since the last call; returns as the terminal adds them are left out.
  std::string text() {
    // The kernel passes it on when it likes; the mark behind it says that all is there.
    constexpr char mark = '\x01';
    std::fputc(mark, file_);
    std::fflush(file_);
    std::string all;
    while (all.empty() || all.back() != mark) {
      char buffer[4096];
      ssize_t const n = ::read(ours_, buffer, sizeof buffer);
      REQUIRE(n > 0);
      all.append(buffer, static_cast<std::size_t>(n));
    }
    all.pop_back();
    for (std::size_t at; (at = all.find("\r\n")) != std::string::npos;) all.erase(at, 1);
    return all;
  }

 private:
  int ours_ = -1;
  int theirs_ = -1;
  std::FILE* file_ = nullptr;
};

TEST_CASE("lines are drawn below an empty one, on which the cursor comes to rest") {
  Terminal terminal(24, 80);
  Display display(terminal.file(), false);
  display.draw({{"one"}, {"two"}});
  CHECK(terminal.text() == "\r\x1b[J\none\ntwo\x1b[2A\r");
}

TEST_CASE("the end leaves the lines, and the cursor below them, once") {
  Terminal terminal(24, 80);
  {
    Display display(terminal.file(), false);
    display.draw({{"one"}, {"two"}});
    static_cast<void>(terminal.text());
    display.end();
    CHECK(terminal.text() == "\r\x1b[Jone\ntwo\n");
  }
  CHECK(terminal.text().empty());
}

TEST_CASE("what was never drawn leaves nothing") {
  Terminal terminal(24, 80);
  {
    Display const display(terminal.file(), false);
  }
  CHECK(terminal.text().empty());
}

TEST_CASE(
    "the size is that of the moment: lines are cut to the columns, and left out for the rows") {
  Terminal terminal(24, 80);
  Display display(terminal.file(), false);
  display.draw({{"one"}, {"two"}, {"three"}});
  static_cast<void>(terminal.text());
  terminal.resize(3, 4);
  display.draw({{"one"}, {"two"}, {"three"}});
  CHECK(terminal.text() == "\r\x1b[J\none\ntwo\x1b[2A\r");
  terminal.resize(1, 3);
  display.draw({{"one"}, {"two"}, {"three"}});
  CHECK(terminal.text() == "\r\x1b[Jon\r");
}

TEST_CASE("colour covers its part of the text, and what is cut is not coloured") {
  Terminal terminal(24, 80);
  Display display(terminal.file(), true);
  display.draw({{"[##..]", 1, 3}});
  CHECK(terminal.text() == "\r\x1b[J\n[\x1b[32m##\x1b[0m..]\x1b[1A\r");
  terminal.resize(24, 3);
  display.draw({{"[##..]", 1, 3}});
  CHECK(terminal.text() == "\r\x1b[J\n[\x1b[32m#\x1b[0m\x1b[1A\r");
  terminal.resize(24, 2);
  display.draw({{"[##..]", 1, 3}});
  CHECK(terminal.text() == "\r\x1b[J\n[\x1b[1A\r");
}

TEST_CASE("print puts its lines above the display") {
  Terminal terminal(24, 80);
  Display display(terminal.file(), false);
  display.draw({{"bar"}});
  static_cast<void>(terminal.text());
  print("a\nb", terminal.file());
  CHECK(terminal.text() == "\r\x1b[Ja\nb\n\r\x1b[J\nbar\x1b[1A\r");
}

TEST_CASE("print writes plainly where nothing is drawn") {
  Terminal terminal(24, 80);
  Display display(terminal.file(), false);
  print("a", terminal.file());
  CHECK(terminal.text() == "a\n");
  std::FILE* const file = std::tmpfile();
  display.draw({{"bar"}});
  print("b\n", file);
  CHECK(std::ftell(file) == 2);
  std::fclose(file);
}

}  // namespace frugal_test::watch_display
