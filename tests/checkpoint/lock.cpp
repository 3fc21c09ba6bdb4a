// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/checkpoint/lock.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"
#include "support/locales.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

namespace {
/// Simulates a network file system that made the link and lost the reply.
bool link_says_eexist = false;
}  // namespace

// Replaces the C library's.
extern "C" int link(char const* from, char const* to) noexcept {
  int const result = ::linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
  if (!link_says_eexist) return result;
  errno = EEXIST;
  return -1;
}

namespace frugal_test::store_lock {

using frugal::LockBy;
using frugal::LockError;
using frugal::LockOwner;
using frugal::RunLock;
using support::TemporaryFolder;

/// Another process that holds a lock until it is killed.
class OtherTrainer {
 public:
  OtherTrainer(std::filesystem::path const& path, LockBy by) {
    std::array<int, 2> ready{};
    REQUIRE(::pipe(ready.data()) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::close(ready[0]);
      RunLock const lock(path, by);
      if (::write(ready[1], "x", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    ::close(ready[0]);
  }
  OtherTrainer(OtherTrainer const&) = delete;
  ~OtherTrainer() { kill(); }

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void kill_and_leave_a_zombie() {
    ::kill(pid_, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

std::string refusal(std::filesystem::path const& path, LockBy by) {
  try {
    RunLock const lock(path, by);
  } catch (LockError const& error) {
    return error.what();
  }
  return "not refused";
}

void with_both(std::function<void(LockBy)> const& test) {
  for (LockBy const by : {LockBy::kernel, LockBy::owner_file}) {
    CAPTURE(static_cast<int>(by));
    test(by);
  }
}

TEST_CASE("a lock that another process holds is refused, and the error names that process") {
  with_both([](LockBy by) {
    TemporaryFolder folder;
    OtherTrainer const other(folder / "lock", by);
    std::string const message = refusal(folder / "lock", by);
    CHECK(message.find("another trainer works in this run directory") != std::string::npos);
    CHECK(message.find("process " + std::to_string(other.pid()) + " on " + frugal::host_name()) !=
          std::string::npos);
  });
}

TEST_CASE("an owner is written and read in any locale of the program") {
  LockOwner const owner{.pid = 1234567,
                        .host = "here",
                        .boot = "b00t",
                        .started = 7654321,
                        .since = "2026-01-02T03:04:05Z"};
  std::string const text =
      "pid 1234567\nhost here\nboot b00t\nstarted 7654321\nsince 2026-01-02T03:04:05Z\n";
  support::GroupedLocale const grouped;  // 1.234.567
  CHECK(owner.text() == text);
  CHECK(LockOwner::parse(text) == owner);
  with_both([](LockBy by) {
    TemporaryFolder folder;
    OtherTrainer const other(folder / "lock", by);
    CHECK(refusal(folder / "lock", by).find("process " + std::to_string(other.pid()) + " on ") !=
          std::string::npos);
  });
}

TEST_CASE("a second lock in the same process is refused") {
  with_both([](LockBy by) {
    TemporaryFolder folder;
    RunLock const lock(folder / "lock", by);
    CHECK(refusal(folder / "lock", by).find("process " + std::to_string(::getpid())) !=
          std::string::npos);
  });
}

TEST_CASE("a lock whose owner was killed is taken, and the next owner learns of it") {
  with_both([](LockBy by) {
    TemporaryFolder folder;
    OtherTrainer other(folder / "lock", by);
    pid_t const pid = other.pid();
    other.kill();
    RunLock const lock(folder / "lock", by);
    REQUIRE(lock.left_by().has_value());
    CHECK(lock.left_by()->pid == pid);
  });
}

TEST_CASE("a killed owner that has not been reaped is dead") {
  TemporaryFolder folder;
  OtherTrainer other(folder / "lock", LockBy::owner_file);
  other.kill_and_leave_a_zombie();
  CHECK(refusal(folder / "lock", LockBy::owner_file) == "not refused");
}

TEST_CASE("a released lock is free and names no owner") {
  with_both([](LockBy by) {
    TemporaryFolder folder;
    {
      RunLock const lock(folder / "lock", by);
    }
    RunLock const lock(folder / "lock", by);
    CHECK_FALSE(lock.left_by().has_value());
  });
}

TEST_CASE("nothing is left of an owner's file after its release") {
  TemporaryFolder folder;
  {
    RunLock const lock(folder / "lock", LockBy::owner_file);
  }
  for (auto const& entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK(entry.path().filename() == "lock");
  }
}

TEST_CASE("an owner of another machine cannot be known to be dead") {
  TemporaryFolder folder;
  LockOwner owner = LockOwner::here();
  owner.host = "spot-17";
  support::write_text(folder / "lock.owner", owner.text());
  std::string const message = refusal(folder / "lock", LockBy::owner_file);
  CHECK(message.find("on spot-17") != std::string::npos);
  CHECK(message.find("remove " + (folder / "lock.owner").string()) != std::string::npos);
}

TEST_CASE("an owner from before a reboot is dead, whatever process has its id now") {
  TemporaryFolder folder;
  LockOwner owner = LockOwner::here();
  owner.boot = "00000000-0000-0000-0000-000000000000";
  support::write_text(folder / "lock.owner", owner.text());
  CHECK(refusal(folder / "lock", LockBy::owner_file) == "not refused");
}

TEST_CASE("a process with a dead owner's id is not taken for it") {
  TemporaryFolder folder;
  LockOwner owner = LockOwner::here();
  owner.started += 1;
  support::write_text(folder / "lock.owner", owner.text());
  CHECK(refusal(folder / "lock", LockBy::owner_file) == "not refused");
}

TEST_CASE("while one replaces a dead owner, another that starts is refused") {
  TemporaryFolder folder;
  LockOwner owner = LockOwner::here();
  owner.started += 1;
  support::write_text(folder / "lock.owner", owner.text());
  std::filesystem::create_directory(folder / "lock.takeover");
  CHECK(refusal(folder / "lock", LockBy::owner_file)
            .find("remove " + (folder / "lock.takeover").string()) != std::string::npos);
}

TEST_CASE("of two that find the same dead owner, the second is refused") {
  TemporaryFolder folder;
  auto const held = folder / "lock.owner";
  REQUIRE(::mkfifo(held.c_str(), 0600) == 0);
  LockOwner const first = LockOwner::here();
  LockOwner dead = first;
  dead.started += 1;
  // A reader of a FIFO waits until something is written: the first trainer takes over while the
  // second still reads the dead owner's name.
  std::thread first_and_dead([&] {
    int const pipe = ::open(held.c_str(), O_WRONLY | O_CLOEXEC);
    support::write_text(folder / "first", first.text());
    std::filesystem::rename(folder / "first", held);
    std::string const text = dead.text();
    if (::write(pipe, text.data(), text.size()) < 0) std::abort();
    ::close(pipe);
  });
  std::string const message = refusal(folder / "lock", LockBy::owner_file);
  first_and_dead.join();
  CHECK(message.find("process " + std::to_string(::getpid())) != std::string::npos);
  CHECK(support::text_of(held) == first.text());
}

TEST_CASE("a lock file with garbage does not hinder the kernel's lock") {
  TemporaryFolder folder;
  support::write_text(folder / "lock", std::string(5000, '\xff'));
  RunLock const lock(folder / "lock");
  CHECK_FALSE(lock.left_by().has_value());
}

TEST_CASE("an empty owner's file is not taken for a dead owner's") {
  TemporaryFolder folder;
  support::write_text(folder / "lock.owner", "");
  CHECK(refusal(folder / "lock", LockBy::owner_file).find("the lock does not name it") !=
        std::string::npos);
}

TEST_CASE("a lock in a missing folder is an error of the file system") {
  TemporaryFolder folder;
  CHECK_THROWS_AS(static_cast<void>(RunLock(folder / "none" / "lock")), frugal::IoError);
}

TEST_CASE("a lock is lost when its folder is renamed, and another run has the name") {
  with_both([](LockBy by) {
    TemporaryFolder folder;
    std::filesystem::create_directory(folder / "a");
    RunLock const first(folder / "a" / "lock", by);
    CHECK_NOTHROW(first.require_held());
    std::filesystem::rename(folder / "a", folder / "was");
    CHECK_THROWS_AS(first.require_held(), LockError);
    std::filesystem::create_directory(folder / "a");
    RunLock const second(folder / "a" / "lock", by);
    CHECK_THROWS_AS(first.require_held(), LockError);
    CHECK_NOTHROW(second.require_held());
  });
}

TEST_CASE("an owner that has lost its folder takes nothing of the next owner's with it") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a");
  {
    RunLock const first(folder / "a" / "lock", LockBy::owner_file);
    std::filesystem::rename(folder / "a", folder / "was");
    std::filesystem::create_directory(folder / "a");
    support::write_text(folder / "a" / "lock.owner", "another's");
  }
  CHECK(support::text_of(folder / "a" / "lock.owner") == "another's");
}

TEST_CASE("a replaced owner's file is a lost lock") {
  TemporaryFolder folder;
  RunLock const lock(folder / "lock", LockBy::owner_file);
  support::write_text(folder / "other", LockOwner::here().text());
  std::filesystem::rename(folder / "other", folder / "lock.owner");
  CHECK_THROWS_AS(lock.require_held(), LockError);
}

TEST_CASE("a lock that is a symbolic link is refused, and its target is not touched") {
  with_both([](LockBy by) {
    TemporaryFolder folder;
    support::write_text(folder / "thesis.txt", "three years of work");
    std::filesystem::create_symlink("thesis.txt", folder / "lock");
    CHECK_THROWS_WITH_AS(static_cast<void>(RunLock(folder / "lock", by)),
                         doctest::Contains("symbolic link"), frugal::StoreError);
    CHECK(support::text_of(folder / "thesis.txt") == "three years of work");
  });
}

TEST_CASE("trainers find each other if only one of them has the kernel's lock") {
  auto const other_way = [](LockBy by) {
    return by == LockBy::kernel ? LockBy::owner_file : LockBy::kernel;
  };
  with_both([&](LockBy by) {
    TemporaryFolder folder;
    OtherTrainer other(folder / "lock", by);
    std::string const who = "process " + std::to_string(other.pid());
    CHECK(refusal(folder / "lock", other_way(by)).find(who) != std::string::npos);
    // The refused trainer has taken nothing from the present one.
    CHECK(refusal(folder / "lock", by).find(who) != std::string::npos);
    other.kill();
    CHECK(refusal(folder / "lock", other_way(by)) == "not refused");
  });
}

TEST_CASE("the kernel's lock does not hide an owner's file of another machine") {
  TemporaryFolder folder;
  LockOwner owner = LockOwner::here();
  owner.host = "spot-17";
  support::write_text(folder / "lock.owner", owner.text());
  CHECK(refusal(folder / "lock", LockBy::kernel).find("on spot-17") != std::string::npos);
  CHECK(support::text_of(folder / "lock").empty());
}

TEST_CASE("an owner on another machine that had the kernel's lock has lost it") {
  TemporaryFolder folder;
  LockOwner owner = LockOwner::here();
  owner.host = "spot-17";
  support::write_text(folder / "lock", owner.text());
  // Without a kernel lock nothing is known about it.
  CHECK(refusal(folder / "lock", LockBy::owner_file).find("on spot-17") != std::string::npos);
  RunLock const lock(folder / "lock", LockBy::kernel);
  CHECK(lock.left_by()->host == "spot-17");
}

TEST_CASE("a program that restarted itself by exec is not refused by its former self") {
  TemporaryFolder folder;
  support::write_text(folder / "lock", LockOwner::here().text());
  CHECK(refusal(folder / "lock", LockBy::kernel) == "not refused");
}

TEST_CASE("an owner's file whose creation was reported as a failure is still ours") {
  TemporaryFolder folder;
  link_says_eexist = true;
  std::string const first = refusal(folder / "lock", LockBy::owner_file);
  RunLock const lock(folder / "lock", LockBy::owner_file);
  std::string const second = refusal(folder / "lock", LockBy::owner_file);
  link_says_eexist = false;
  CHECK(first == "not refused");
  CHECK(second.find("process " + std::to_string(::getpid())) != std::string::npos);
}

TEST_CASE("an owner's text reads back unchanged") {
  LockOwner const owner = LockOwner::here();
  CHECK(LockOwner::parse(owner.text()) == owner);
  CHECK(owner.life() == LockOwner::Life::alive);
  CHECK_FALSE(LockOwner::parse("pid x").has_value());
}

}  // namespace frugal_test::store_lock
