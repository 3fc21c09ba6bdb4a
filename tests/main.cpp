// SPDX-License-Identifier: Apache-2.0
// The main of every test program, compiled once: doctest's own, and
//
//    test_policy --each-file=FOLDER NAME FILE [NAME FILE]...
//
// which runs each file's cases in its own process, as many at a time as there are cores or as
// FRUGAL_JOBS says, and writes the output to FOLDER/NAME.txt, with the verdict on the last line.
// Processes are forked from this one, which has loaded the libraries: loading takes longer than most
// files do.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "support/at_start.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <thread>

namespace {

constexpr unsigned time_limit = 900;  // seconds

[[noreturn]] void give_up(char const* what) {
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

void begin() {
  for (auto* const each : frugal_test::support::at_start()) each();
}

/// In the new process: never returns.
[[noreturn]] void run_file(std::string const& output, std::string const& file) {
  int const descriptor = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0 || ::dup2(descriptor, 1) < 0 || ::dup2(descriptor, 2) < 0) {
    give_up(output.c_str());
  }
  // These processes die with the parent.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(time_limit);
  begin();
  std::string const filter = "--source-file=" + file;
  char const* const arguments[] = {"test", filter.c_str()};
  int const code = doctest::Context(2, arguments).run();
#ifdef FRUGAL_TEST_SANITIZED
  // Leaks and races are reported at the exit.
  std::exit(code);
#else
  // Skip LibTorch's destructors, which take five times as long as most files; the program of a
  // single file (./dev test -R) runs them.
  std::fflush(nullptr);
  std::_Exit(code);
#endif
}

/// Whether doctest finished. A case may exit the process with 0.
bool has_summary(std::string const& output) {
  std::ifstream file(output);
  std::string const said{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return said.find("[doctest] Status: SUCCESS!") != std::string::npos;
}

std::size_t jobs() {
  char const* const asked = std::getenv("FRUGAL_JOBS");
  unsigned const number = asked != nullptr ? static_cast<unsigned>(std::atoi(asked)) : 0;
  return std::max(1U, number != 0 ? number : std::thread::hardware_concurrency());
}

double seconds(timeval const& time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); }

/// Waits for one of the processes, and writes its verdict.
void judge_one(std::map<pid_t, std::string>& running) {
  int status = 0;
  rusage used{};
  pid_t const ended = ::wait4(-1, &status, 0, &used);
  auto const known = running.find(ended);
  if (known == running.end()) give_up("wait");
  std::FILE* const output = std::fopen(known->second.c_str(), "ae");
  if (output == nullptr) give_up(known->second.c_str());
  std::fprintf(output, "\nseconds of CPU: %.1f", seconds(used.ru_utime) + seconds(used.ru_stime));
  if (WIFSIGNALED(status)) {
    std::fprintf(output, "\nverdict: signal %d (%s)\n", WTERMSIG(status),
                 ::strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    std::fprintf(output, "\nverdict: exit code %d\n", WEXITSTATUS(status));
  } else if (!has_summary(known->second)) {
    std::fprintf(output, "\nverdict: it ended before its tests did\n");
  } else {
    std::fprintf(output, "\nverdict: passed\n");
  }
  if (std::fclose(output) != 0) give_up(known->second.c_str());
  running.erase(known);
}

int run_each(std::string const& folder, int count, char** names_and_files) {
  std::map<pid_t, std::string> running;
  // An earlier run's output must not pass for this one's verdict.
  for (int i = 0; i + 1 < count; i += 2) {
    ::unlink((folder + "/" + names_and_files[i] + ".txt").c_str());
  }
  for (int i = 0; i + 1 < count; i += 2) {
    if (running.size() >= jobs()) judge_one(running);
    std::string const output = folder + "/" + names_and_files[i] + ".txt";
    pid_t const process = ::fork();
    if (process < 0) give_up("fork");
    if (process == 0) run_file(output, names_and_files[i + 1]);
    running.emplace(process, output);
  }
  while (!running.empty()) judge_one(running);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::string_view each = "--each-file=";
  if (argc > 3 && std::string_view(argv[1]).starts_with(each)) {
    return run_each(argv[1] + each.size(), argc - 2, argv + 2);
  }
  begin();
  return doctest::Context(argc, argv).run();
}
