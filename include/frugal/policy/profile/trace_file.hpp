// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <frugal/watch/profile/memory_line.hpp>

namespace frugal::detail {

/// A moment as Chrome's trace format has it: microseconds since the trace's base, without the
/// rounding that a double of nanoseconds since 1970 would have.
inline std::string trace_moment(std::uint64_t nanoseconds, std::uint64_t base) {
  std::uint64_t const since = nanoseconds > base ? nanoseconds - base : 0;
  char text[40];
  std::snprintf(text, sizeof text, "%llu.%03llu", static_cast<unsigned long long>(since / 1000),
                static_cast<unsigned long long>(since % 1000));
  return text;
}

/// Copies a trace that Kineto has written, and adds the memory as a counter track, which Perfetto
/// and chrome://tracing draw as a curve; Kineto's own memory events are dots. False if either file
/// fails, or the first is not such a trace.
inline bool copy_with_counter(std::filesystem::path const& from, std::filesystem::path const& to,
                              std::vector<watch::MemoryPoint> const& memory, std::uint64_t begin) {
  constexpr std::string_view base_key = "\"baseTimeNanoseconds\": ";
  std::ifstream in(from);
  std::ofstream out(to, std::ios::trunc);
  std::uint64_t base = 0;
  bool found = false;
  for (std::string line; std::getline(in, line);) {
    out << line << '\n';
    if (found) continue;
    if (auto const at = line.find(base_key); at != std::string::npos) {
      char const* const digits = line.data() + at + base_key.size();
      std::from_chars(digits, line.data() + line.size(), base);
    }
    if (line.find("\"traceEvents\": [") == std::string::npos) continue;
    found = true;
    for (watch::MemoryPoint const& each : memory) {
      auto const at = begin + static_cast<std::uint64_t>(each.seconds * 1e9);
      out << R"({"ph":"C","cat":"memory","name":"tensor bytes","pid":)" << ::getpid()
          << R"(,"tid":0,"ts":)" << trace_moment(at, base) << R"(,"args":{"bytes":)" << each.bytes
          << "}},\n";
    }
  }
  out.close();
  return found && in.eof() && !out.fail();
}

}  // namespace frugal::detail
