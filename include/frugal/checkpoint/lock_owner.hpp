// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/run_file.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace frugal {

/// This machine's name.
std::string host_name();

/// The owner of a lock, precise enough to tell it from a later process with the same id.
struct LockOwner {
  enum class Life { alive, dead, unknown };

  std::int64_t pid = 0;
  std::string host;
  std::string boot;           ///< boot id of the machine, from Linux
  std::uint64_t started = 0;  ///< start of the process, in ticks since boot
  std::string since;          ///< when the lock was taken, for human readers

  bool operator==(LockOwner const&) const = default;

  /// The current process.
  static LockOwner here();

  std::string text() const;

  /// Nothing for an empty or malformed text.
  static std::optional<LockOwner> parse(std::string const& text);

  /// Unknown for an owner on another machine.
  Life life() const;

  std::string words() const {
    return "process " + std::to_string(pid) + " on " + host + ", since " + since;
  }

 private:
  static std::string boot_id();

  /// Field 22 of /proc/PID/stat (proc(5)). The name before it may contain spaces and parentheses. 0
  /// for a zombie, which has only its process id left.
  static std::optional<std::uint64_t> start_of(std::int64_t pid);
};

namespace detail {

inline std::optional<LockOwner> read_owner(std::filesystem::path const& path) {
  return LockOwner::parse(read_run_file(path, 1024));
}

void write_small_file(std::filesystem::path const& path, std::string const& text);

}  // namespace detail

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/lock_owner.ipp>
#endif
