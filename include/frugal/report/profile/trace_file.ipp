// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/profile/trace_file.hpp>

#include <frugal/base/json_writer.hpp>
#include <frugal/inline.hpp>

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE std::string trace_moment(std::uint64_t nanoseconds, std::uint64_t base) {
  std::uint64_t const since = nanoseconds > base ? nanoseconds - base : 0;
  char text[40];
  std::snprintf(text, sizeof text, "%llu.%03llu", static_cast<unsigned long long>(since / 1000),
                static_cast<unsigned long long>(since % 1000));
  return text;
}

FRUGAL_INLINE std::string counter_event(std::uint64_t at, std::uint64_t base, std::int64_t bytes) {
  JsonWriter event;
  event.object().add("ph", "C").add("cat", "memory").add("name", "tensor bytes");
  event.add("pid", ::getpid()).add("tid", 0).key("ts").raw(trace_moment(at, base));
  return event.key("args").object().add("bytes", bytes).str(",\n");
}

FRUGAL_INLINE bool copy_with_counter(std::filesystem::path const& from,
                                     std::filesystem::path const& to,
                                     std::vector<watch::MemoryPoint> const& memory,
                                     std::uint64_t begin) {
  constexpr std::string_view base_key = "\"baseTimeNanoseconds\": ";
  std::ifstream in(from);
  std::filesystem::path const part = to.string() + ".part";
  std::ofstream out(part, std::ios::trunc);
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
      out << counter_event(at, base, each.bytes);
    }
  }
  out.close();
  std::error_code failure;
  bool const whole = found && in.eof() && !out.fail();
  if (whole) std::filesystem::rename(part, to, failure);
  if (whole && !failure) return true;
  std::filesystem::remove(part, failure);
  return false;
}

FRUGAL_INLINE void remove_parts(std::filesystem::path const& folder) {
  std::error_code failure;
  std::vector<std::filesystem::path> parts;
  for (std::filesystem::directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    std::string const name = at->path().filename().string();
    bool const part = name.ends_with(".part") || name.ends_with(".part.tmp");
    if (part || name == "hot_spots.json.new") parts.push_back(at->path());
  }
  for (std::filesystem::path const& each : parts) std::filesystem::remove(each, failure);
}

}  // namespace frugal::detail
