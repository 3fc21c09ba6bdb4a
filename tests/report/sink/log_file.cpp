// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/sink/log_file.hpp>

#include "support/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace frugal_test::log_file {

using frugal::detail::LogFile;
using support::TemporaryFolder;
using support::text_of;

bool none(std::string_view) { return false; }

TEST_CASE("lines are appended, to existing ones as well, and are there at once") {
  TemporaryFolder const folder;
  std::ofstream(folder / "log") << "before\n";
  LogFile file(folder / "log");
  REQUIRE(file.open());
  CHECK(file.regular());
  CHECK(file.append("one\ntwo\n"));
  CHECK(text_of(folder / "log") == "before\none\ntwo\n");
  CHECK(file.mark().size == 15);
}

TEST_CASE("lines after a mark are cut off, except kept ones, and more are appended") {
  TemporaryFolder const folder;
  LogFile file(folder / "log");
  REQUIRE(file.append("a\n"));
  LogFile::Mark const mark = file.mark();
  REQUIRE(file.append("b\nkeep this\nc\nkeep that\nhalf a li"));
  CHECK(file.cut({.mark = mark}, [](std::string_view line) { return line.starts_with("keep"); }));
  CHECK(text_of(folder / "log") == "a\nkeep this\nkeep that\n");
  CHECK(file.append("d\n"));
  CHECK(text_of(folder / "log") == "a\nkeep this\nkeep that\nd\n");
}

TEST_CASE("another process cuts at the mark of the previous one") {
  TemporaryFolder const folder;
  LogFile::Mark mark;
  {
    LogFile first(folder / "log");
    REQUIRE(first.append("a\n"));
    mark = first.mark();
    REQUIRE(first.append("lost\n"));
  }
  LogFile second(folder / "log");
  CHECK(second.cut({.mark = mark}, none));
  CHECK(text_of(folder / "log") == "a\n");
}

TEST_CASE("another file with that name is not cut, however long it is") {
  TemporaryFolder const folder;
  LogFile first(folder / "log");
  REQUIRE(first.append("the first line\n"));
  LogFile::Mark const mark = first.mark();
  std::filesystem::rename(folder / "log", folder / "log.1");
  LogFile second(folder / "log");
  REQUIRE(second.append("lines of a new file, more of them than the mark is long\n"));
  std::string const before = text_of(folder / "log");
  CHECK(second.cut({.mark = mark}, none));
  CHECK(text_of(folder / "log") == before);
  // The first one continues in the moved file.
  REQUIRE(first.append("on\n"));
  CHECK(text_of(folder / "log.1") == "the first line\non\n");
}

TEST_CASE("a place in a branch that a return has replaced gets its own lines again") {
  TemporaryFolder const folder;
  auto const resumes = [](std::string_view line) { return line.starts_with("resume"); };
  LogFile file(folder / "log");
  REQUIRE(file.append("begin\n"));
  LogFile::Mark const base = file.mark();
  REQUIRE(file.append("1\nresume a\n2\n"));
  LogFile::Place const place = file.place(base);
  CHECK(place.since == "1\nresume a\n2\n");
  // The return keeps events, and its branch is shorter first and then longer than the place.
  REQUIRE(file.cut({.mark = base}, resumes));
  REQUIRE(file.append("rollback\n"));
  for (char const* const more : {"", "1 again\n2 again\n3 again\n"}) {
    REQUIRE(file.append(more));
    std::string const branch = text_of(folder / "log");
    std::filesystem::copy_file(folder / "log", folder / "copy");
    LogFile copy(folder / "copy");
    REQUIRE(copy.append("resume b\n"));
    CHECK(copy.cut(place, resumes));
    CHECK(text_of(folder / "copy") == "begin\n1\nresume a\n2\nresume b\n");
    CHECK(copy.cut(place, resumes));
    CHECK(text_of(folder / "copy") == "begin\n1\nresume a\n2\nresume b\n");
    std::filesystem::remove(folder / "copy");
  }
  // Another file is left alone, and has no place to return to.
  std::ofstream(folder / "other") << "longer than all of those lines together, by far\n";
  LogFile other(folder / "other");
  CHECK(other.cut(place, resumes));
  CHECK(text_of(folder / "other") == "longer than all of those lines together, by far\n");
  CHECK(other.place(base).base.size == 0);
}

TEST_CASE("a mark of an empty file cuts nothing: which file that was is unknown") {
  TemporaryFolder const folder;
  LogFile file(folder / "log");
  LogFile::Mark const mark = file.mark();
  REQUIRE(file.append("a\n"));
  CHECK(file.cut({.mark = mark}, none));
  CHECK(text_of(folder / "log") == "a\n");
}

TEST_CASE("a length without further information is trusted") {
  TemporaryFolder const folder;
  LogFile file(folder / "log");
  REQUIRE(file.append("a\nb\n"));
  CHECK(file.cut({.mark = file.mark_at(2)}, none));
  CHECK(text_of(folder / "log") == "a\n");
  CHECK(file.cut({.mark = file.mark_at(100)}, none));  // the file is shorter
  CHECK(text_of(folder / "log") == "a\n");
}

TEST_CASE("a pipe is appended to and never cut") {
  TemporaryFolder const folder;
  auto const path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  int const reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  LogFile file(path);
  REQUIRE(file.open());
  CHECK_FALSE(file.regular());
  LogFile::Mark const mark = file.mark();
  CHECK(file.append("a\nb\n"));
  CHECK(file.cut({.mark = mark}, none));
  char text[16];
  CHECK(::read(reader, text, sizeof text) == 4);
  ::close(reader);
}

TEST_CASE("a write to a pipe without a reader fails, without a signal") {
  TemporaryFolder const folder;
  auto const path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  int const reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  LogFile file(path);
  ::close(reader);
  CHECK_FALSE(file.append("a\n"));
  CHECK(errno == EPIPE);
}

TEST_CASE("a failed write says why, and leaves no half line") {
  LogFile full("/dev/full");
  REQUIRE(full.open());
  CHECK_FALSE(full.append("a\n"));
  CHECK(errno == ENOSPC);
  CHECK_FALSE(LogFile("/nowhere/at/all").open());
}

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

}  // namespace frugal_test::log_file
