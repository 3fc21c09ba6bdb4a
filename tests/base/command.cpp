// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frugal/base/command.hpp>

#include "support/files.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace frugal_test::store_command {

using frugal::Command;
using frugal::detail::filled;
using frugal::detail::run_command;

std::string why(Command const& command) {
  try {
    run_command(command);
  } catch (frugal::StoreError const& error) {
    return error.fault().why;
  }
  return "it ended well";
}

TEST_CASE("placeholders are replaced wherever they stand, once") {
  CHECK(filled({"cp", "{file}", "s3://b/{name}.{hash}", "{other}", "{", "}{file"},
               {{"file", "/a/{name}"}, {"name", "x"}, {"hash", "1f"}}) ==
        Command{"cp", "/a/{name}", "s3://b/x.1f", "{other}", "{", "}{file"});
}

TEST_CASE("a command that exits with 0 succeeds") { CHECK_NOTHROW(run_command({"true"})); }

TEST_CASE("a command that exits otherwise is an error with its exit code and output") {
  CHECK(why({"sh", "-c", "echo out; echo err >&2; exit 9"}) ==
        "exit code 9, and it said \"out\nerr\"");
  CHECK(why({"false"}) == "exit code 1, and it said nothing");
  CHECK(why({"sh", "-c", "kill -9 $$"}) == "signal 9, and it said nothing");
}

TEST_CASE("a command that is missing, or empty, is an error") {
  CHECK(why({"no-such-program-of-frugal"}).find("No such file or directory") != std::string::npos);
  CHECK(why({}) == "it is empty");
}

TEST_CASE("arguments reach the program unchanged, whatever a shell would make of them") {
  support::TemporaryFolder folder;
  std::string const name = (folder / "a b; $(touch c) `d` * 'e").string();
  run_command({"touch", name});
  CHECK(std::filesystem::exists(name));
}

TEST_CASE("a command with endless output does not hang") {
  CHECK(why({"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; exit 1"}).size() < 4000);
}

TEST_CASE("a command gets an empty input and not the trainer's terminal") {
  CHECK_NOTHROW(run_command({"sh", "-c", "! read line"}));
}

using frugal::detail::ChildProcess;
using frugal::detail::ProcessEnd;
using frugal::detail::ProcessLimits;
using How = ProcessEnd::How;

ProcessEnd end_of(std::vector<std::string> const& command, ProcessLimits const& limits = {}) {
  return ChildProcess(command, limits).wait();
}

/// Changes the handling of SIGCHLD for its lifetime.
class OnChild {
 public:
  explicit OnChild(void (*handler)(int), int flags = 0) {
    struct sigaction action{};
    action.sa_handler = handler;
    action.sa_flags = flags;
    ::sigaction(SIGCHLD, &action, &before_);
  }
  OnChild(OnChild const&) = delete;
  ~OnChild() { ::sigaction(SIGCHLD, &before_, nullptr); }

 private:
  struct sigaction before_{};
};

extern "C" void reap_all(int) {
  int const before = errno;  // the interrupted code may be about to read it
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  errno = before;
}

void tells_how_it_ended() {
  ProcessEnd const end = end_of({"sh", "-c", "echo out; echo err >&2; exit 9"});
  CHECK(end.how == How::exited);
  CHECK(end.code == 9);
  CHECK(end.said == "out\nerr\n");
  CHECK(end_of({"true"}).code == 0);
  CHECK(end_of({"sh", "-c", "kill -9 $$"}).how == How::killed);
  CHECK(end_of({"sh", "-c", "kill -9 $$"}).code == 9);
  ProcessEnd const none = end_of({"no-such-program-of-frugal"});
  CHECK(none.how == How::not_started);
  CHECK(none.code == ENOENT);
}

TEST_CASE("a process reports how it ended and its output") { tells_how_it_ended(); }

TEST_CASE("it also does so in a program that ignores SIGCHLD, or reaps every child") {
  {
    OnChild const ignored(SIG_IGN);
    tells_how_it_ended();
  }
  {
    OnChild const not_waited_for(SIG_DFL, SA_NOCLDWAIT);
    tells_how_it_ended();
  }
  OnChild const reaped(reap_all);
  tells_how_it_ended();
}

TEST_CASE("a process waits for its own children, whatever this program does with SIGCHLD") {
  OnChild const ignored(SIG_IGN);
  // A shell would not see the 3 if SIGCHLD is ignored.
  CHECK(end_of({"sh", "-c", "sh -c 'exit 3' & wait $!"}).code == 3);
}

TEST_CASE("a process without time left is late") {
  CHECK(end_of({"tail", "-f", "/dev/null"}, {.patience = std::chrono::seconds(0)}).how ==
        How::late);
}

TEST_CASE("the children of a process are killed with it") {
  std::array<int, 2> held{};
  REQUIRE(::pipe(held.data()) == 0);  // which all of them inherit
  {
    ChildProcess const process(
        {"sh", "-c", "echo ready >&" + std::to_string(held[1]) + "; tail -f /dev/null & wait"}, {});
    std::array<char, 6> ready{};
    CHECK(::read(held[0], ready.data(), ready.size()) == 6);
  }
  ::close(held[1]);
  char byte = 0;
  CHECK(::read(held[0], &byte, 1) == 0);  // the other end is closed everywhere
  ::close(held[0]);
}

TEST_CASE("a process that starts another in the background is not waited for twice") {
  std::array<int, 2> held{};
  REQUIRE(::pipe(held.data()) == 0);
  // The background process keeps the output open until the pipe has a byte.
  ProcessEnd const end = end_of(
      {"sh", "-c", "echo said; (exec head -c 1 <&" + std::to_string(held[0]) + ") & exit 4"});
  CHECK(end.code == 4);
  CHECK(end.said == "said\n");
  CHECK(::write(held[1], "x", 1) == 1);
  ::close(held[0]);
  ::close(held[1]);
}

TEST_CASE("no file of a process grows beyond its limit") {
  support::TemporaryFolder folder;
  std::string const path = (folder / "file").string();
  std::vector<std::string> const command{"sh", "-c", "exec head -c 100000 /dev/zero > \"$1\"", "sh",
                                         path};
  ProcessEnd const end = end_of(command, {.largest_file = 5000});
  CHECK(end.how == How::killed);
  CHECK(end.code == SIGXFSZ);
  CHECK(std::filesystem::file_size(path) == 5000);
  CHECK(end_of(command, {.largest_file = 100'000}).code == 0);
}

TEST_CASE("processes leak no descriptor and no zombie") {
  std::size_t const before = support::entries("/proc/self/fd");
  for (int i = 0; i < 20; ++i) end_of({"true"});
  CHECK(support::entries("/proc/self/fd") == before);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

}  // namespace frugal_test::store_command
