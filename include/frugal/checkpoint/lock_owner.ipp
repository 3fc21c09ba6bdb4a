// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/lock_owner.hpp>

#include <frugal/base/file.hpp>
#include <frugal/inline.hpp>

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <fstream>
#include <limits>
#include <locale>
#include <span>
#include <sstream>

namespace frugal {

FRUGAL_INLINE std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

FRUGAL_INLINE LockOwner LockOwner::here() {
  std::time_t const now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> since{};
  std::strftime(since.data(), since.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {.pid = ::getpid(),
          .host = host_name(),
          .boot = boot_id(),
          .started = start_of(::getpid()).value_or(0),
          .since = since.data()};
}

FRUGAL_INLINE std::string LockOwner::text() const {
  // Not by a stream: the program's locale may group the digits of a number.
  return "pid " + std::to_string(pid) + "\nhost " + host + "\nboot " + boot + "\nstarted " +
         std::to_string(started) + "\nsince " + since + "\n";
}

FRUGAL_INLINE std::optional<LockOwner> LockOwner::parse(std::string const& text) {
  LockOwner owner;
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  std::array<std::string, 5> key;
  in >> key[0] >> owner.pid >> key[1] >> owner.host >> key[2] >> owner.boot >> key[3] >>
      owner.started >> key[4] >> owner.since;
  std::array<std::string, 5> const expected{"pid", "host", "boot", "started", "since"};
  if (!in || key != expected || owner.pid < 1) return std::nullopt;
  return owner;
}

FRUGAL_INLINE LockOwner::Life LockOwner::life() const {
  if (host != host_name() || pid > std::numeric_limits<pid_t>::max()) return Life::unknown;
  if (boot != boot_id()) return Life::dead;  // the machine has rebooted since
  if (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return Life::dead;
  auto const now = start_of(pid);
  return now && *now != started ? Life::dead : Life::alive;
}

FRUGAL_INLINE std::string LockOwner::boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id.empty() ? "unknown" : id;
}

FRUGAL_INLINE std::optional<std::uint64_t> LockOwner::start_of(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  auto const name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  fields.imbue(std::locale::classic());
  std::string skipped;
  fields >> skipped;
  if (skipped == "Z" || skipped == "X") return 0;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  std::uint64_t ticks = 0;
  if (!(fields >> ticks)) return std::nullopt;
  return ticks;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void write_small_file(std::filesystem::path const& path, std::string const& text) {
  ::unlink(path.c_str());  // left by an earlier process with this id
  File file = File::create(path);
  file.write(std::as_bytes(std::span<char const>(text.data(), text.size())));
  file.sync();
  file.close();
}

}  // namespace frugal::detail
