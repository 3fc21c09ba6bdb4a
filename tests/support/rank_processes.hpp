// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <ATen/Parallel.h>

#include "at_start.hpp"
#include "files.hpp"
#include "sockets.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <source_location>
#include <sstream>
#include <string>
#include <vector>

/// Ranks as processes, each of which runs the case "a rank of a world" of the same file. LibTorch has one generator for
/// all threads, so ranks that draw random numbers cannot be threads.
namespace frugal_test::support::rank_processes {

/// What the case of a rank prints; nothing if it throws before.
inline void answer(std::string const& result) { std::cout << "RESULT " << result << std::endl; }

/// The name of the job that this process shall do.
inline std::string job() { return std::getenv("FRUGAL_TEST_JOB"); }

/// A process that forks ranks. It is forked itself before the program's first case: it has loaded LibTorch, which
/// takes longer than most ranks do, and has none of its threads.
class Forks {
 public:
  static constexpr unsigned patience = 120;  ///< seconds of a rank

  static void start() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      serve(ends[1]);
    }
    ::close(ends[1]);
    socket_ = ends[0];
  }

  /// Lines: number of ranks, folder of their outputs, file of the case, and variables, of which "RANK=" is added.
  static void run(std::string const& lines) {
    REQUIRE(socket_ >= 0);
    REQUIRE(::send(socket_, lines.data(), lines.size(), 0) == static_cast<ssize_t>(lines.size()));
    char done = 0;
    REQUIRE(::recv(socket_, &done, 1, 0) == 1);
  }

 private:
  [[noreturn]] static void serve(int socket) {
    std::vector<char> buffer(std::size_t{1} << 16);
    while (true) {
      ssize_t const got = ::recv(socket, buffer.data(), buffer.size(), 0);
      if (got <= 0) std::_Exit(0);
      std::istringstream in(std::string(buffer.data(), static_cast<std::size_t>(got)));
      std::string count, folder, file;
      std::getline(in, count), std::getline(in, folder), std::getline(in, file);
      std::vector<std::string> variables;
      for (std::string line; std::getline(in, line);) variables.push_back(line);
      // Pipes, because a rank whose disk is full could write to no file.
      std::vector<int> outputs;
      for (int rank = 0; rank < std::stoi(count); ++rank) {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::_Exit(1);
        ::fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        if (::fork() == 0) be_rank(std::to_string(rank), ends[1], file, variables);
        ::close(ends[1]);
        outputs.push_back(ends[0]);
      }
      for (std::size_t rank = 0; rank < outputs.size(); ++rank) {
        std::ofstream said(folder + "/" + std::to_string(rank));
        for (ssize_t part = 1; part > 0;) {
          part = ::read(outputs[rank], buffer.data(), buffer.size());
          if (part > 0) said.write(buffer.data(), part);
        }
        ::close(outputs[rank]);
      }
      while (::wait(nullptr) > 0) {
      }
      ::send(socket, "", 1, 0);
    }
  }

  [[noreturn]] static void be_rank(std::string const& rank, int output, std::string const& file,
                                   std::vector<std::string> const& variables) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::alarm(patience);
    if (::dup2(output, 1) < 0 || ::dup2(output, 2) < 0) std::_Exit(1);
    ::setenv("RANK", rank.c_str(), 1);
    for (std::string const& each : variables) {
      std::size_t const end = each.find('=');
      ::setenv(each.substr(0, end).c_str(), each.substr(end + 1).c_str(), 1);
    }
    at::set_num_threads(1);
    std::string const filter = "--source-file=" + file;
    std::array<char const*, 4> const arguments{"test", "--no-skip", "--test-case=a rank of a world",
                                               filter.c_str()};
    int const code = doctest::Context(static_cast<int>(arguments.size()), arguments.data()).run();
    std::fflush(nullptr);
    std::_Exit(code);
  }

  inline static int socket_ = -1;
};
inline bool const starts_forks = (at_start().push_back(&Forks::start), true);

/// What each of `size` ranks has answered. `more`: variables for all of them. The answer of the rank
/// that may be silent is empty if it has none.
inline std::vector<std::string> run(
    std::string const& name, int size, std::vector<std::string> const& more = {},
    int may_be_silent = -1, std::source_location const& caller = std::source_location::current()) {
  Port free;
  free.close();
  TemporaryFolder const outputs;
  std::string lines = std::to_string(size) + '\n' + outputs.path().string() + '\n' +
                      caller.file_name() + "\nWORLD_SIZE=" + std::to_string(size) +
                      "\nMASTER_ADDR=127.0.0.1\nMASTER_PORT=" + std::to_string(free.number) +
                      "\nFRUGAL_TEST_JOB=" + name;
  for (std::string const& each : more) lines += '\n' + each;
  Forks::run(lines);
  std::vector<std::string> results;
  for (int rank = 0; rank < size; ++rank) {
    std::string const said = text_of(outputs / std::to_string(rank));
    std::size_t const begin = said.find("RESULT ");
    CAPTURE(said);
    if (begin == std::string::npos && rank == may_be_silent) {
      results.emplace_back();
      continue;
    }
    REQUIRE(begin != std::string::npos);
    results.push_back(said.substr(begin, said.find('\n', begin) - begin));
  }
  return results;
}

}  // namespace frugal_test::support::rank_processes
