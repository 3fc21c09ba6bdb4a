// SPDX-License-Identifier: Apache-2.0
// Starts of the job, each a fork of a single-threaded process that has loaded LibTorch.
#pragma once

#include "job.hpp"

#include "support/files.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

namespace frugal_test::fault {

/// A violation found by a test.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void require(bool holds, std::string const& what) {
  if (!holds) throw Violation(what);
}

/// A temporary folder, in memory if possible. A kill loses nothing that the kernel has, so the disk
/// makes no difference.
class Scratch {
 public:
  Scratch() {
    std::string name = (::access("/dev/shm", W_OK) == 0 ? std::filesystem::path("/dev/shm")
                                                        : std::filesystem::temp_directory_path()) /
                       "frugal-fault-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no scratch folder: " + name);
    path_ = std::filesystem::canonical(name);
  }
  Scratch(Scratch const&) = delete;
  Scratch& operator=(Scratch const&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path const& path() const { return path_; }
  std::filesystem::path operator/(std::string const& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// The threads of this process, after joined ones have disappeared: the kernel wakes the joiner
/// first and removes the thread from its list a moment later. A thread that stays is counted after
/// 5 s.
inline std::size_t threads_left() {
  using Clock = std::chrono::steady_clock;
  auto const end = Clock::now() + std::chrono::seconds(5);
  std::size_t count = support::entries("/proc/self/task");
  while (count != 1 && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    count = support::entries("/proc/self/task");
  }
  return count;
}

/// How a process ended.
struct End {
  int status = 0;
  bool killed_by(int which) const { return WIFSIGNALED(status) && WTERMSIG(status) == which; }
  bool exited(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
  std::string words() const {
    if (WIFSIGNALED(status)) {
      return std::string("killed by SIG") + ::sigabbrev_np(WTERMSIG(status));
    }
    return "exit code " + std::to_string(WEXITSTATUS(status));
  }
};

/// Runs a body in its own process: 0 success, 3 a StoreError, 4 another exception, or the body's
/// own status; output goes to a file. SIGALRM kills one that hangs.
class Start {
 public:
  template <class Body>
  Start(std::filesystem::path const& words, Body body) {
    static Told* const told = [] {
      void* const place =
          ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (place == MAP_FAILED) throw std::runtime_error("no shared memory");
      return static_cast<Told*>(place);
    }();
    told_ = ::new (told) Told;
    words_ = words;
    // Locks that another thread holds at a fork stay locked in the child for ever.
    if (threads_left() != 1) throw std::runtime_error("the parent has threads");
    std::cout.flush();
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("no process");
    if (pid_ == 0) child(body);
  }
  Start(Start const&) = delete;
  Start& operator=(Start const&) = delete;
  ~Start() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }

  Told const& told() const { return *told_; }

  bool lives() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  }
  void send(int which) const { ::kill(pid_, which); }

  End wait() {
    End end;
    while (::waitpid(pid_, &end.status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return end;
  }
  std::string words() const { return support::text_of(words_); }

 private:
  template <class Body>
  [[noreturn]] void child(Body& body) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::alarm(120);
    if (std::freopen(words_.c_str(), "w", stderr) == nullptr) std::_Exit(5);
    int code = 4;
    try {
      code = body(*told_);
    } catch (frugal::StoreError const& error) {
      std::cerr << error.what() << '\n';
      code = 3;
    } catch (std::exception const& error) {
      std::cerr << error.what() << '\n';
    }
    std::fflush(nullptr);
    std::_Exit(code);
  }

  Told* told_ = nullptr;
  std::filesystem::path words_;
  pid_t pid_ = 0;
};

/// Waits that long, or until the process ends; true if it lives.
inline bool pass(Start const& start, double seconds) {
  auto const until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (start.lives()) {
    double const left =
        std::chrono::duration<double>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) return true;
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, 0.001)));
  }
  return false;
}

/// Waits until the condition holds, or the process ends; true if the condition holds.
template <class Condition>
bool pass_until(Start const& start, Condition condition) {
  while (!condition()) {
    if (!start.lives()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

}  // namespace frugal_test::fault
