// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/profile/trace.hpp>

#include <frugal/base/json_writer.hpp>
#include <frugal/inline.hpp>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <system_error>

namespace frugal::watch {

FRUGAL_INLINE Spans merged(Spans spans) {
  std::erase_if(spans, [](Span const& each) { return each.length() == 0; });
  std::sort(spans.begin(), spans.end(),
            [](Span const& a, Span const& b) { return a.begin < b.begin; });
  Spans all;
  for (Span const& each : spans) {
    if (!all.empty() && each.begin <= all.back().end) {
      all.back().end = std::max(all.back().end, each.end);
    } else {
      all.push_back(each);
    }
  }
  return all;
}

FRUGAL_INLINE std::uint64_t total(Spans const& spans) {
  std::uint64_t sum = 0;
  for (Span const& each : spans) sum += each.length();
  return sum;
}

FRUGAL_INLINE Spans common(Spans const& a, Spans const& b) {
  Spans both;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    Span const here{std::max(a[i].begin, b[k].begin), std::min(a[i].end, b[k].end)};
    if (here.length() != 0) both.push_back(here);
    ++(a[i].end < b[k].end ? i : k);
  }
  return both;
}

FRUGAL_INLINE Spans without(Spans const& a, Spans const& b) {
  Spans rest;
  std::size_t k = 0;
  for (Span each : a) {
    while (k < b.size() && b[k].end <= each.begin) ++k;
    for (std::size_t at = k; at < b.size() && b[at].begin < each.end; ++at) {
      if (b[at].begin > each.begin) rest.push_back({each.begin, b[at].begin});
      each.begin = std::max(each.begin, b[at].end);
    }
    if (each.length() != 0) rest.push_back(each);
  }
  return rest;
}

FRUGAL_INLINE bool holds(Spans const& spans, std::uint64_t moment) {
  auto const after =
      std::upper_bound(spans.begin(), spans.end(), moment,
                       [](std::uint64_t at, Span const& each) { return at < each.begin; });
  return after != spans.begin() && moment < std::prev(after)->end;
}

FRUGAL_INLINE std::vector<MemoryPoint> memory_line(Trace const& trace) {
  std::vector<MemoryChange> changes = trace.memory;
  // At one moment what is given back first: the order is unknown, and no peak is invented.
  std::sort(changes.begin(), changes.end(), [](MemoryChange const& a, MemoryChange const& b) {
    return a.at != b.at ? a.at < b.at : a.bytes < b.bytes;
  });
  std::vector<MemoryPoint> line;
  std::int64_t now = 0;
  for (MemoryChange const& each : changes) {
    now += each.bytes;
    line.push_back({static_cast<double>(Span{trace.span.begin, each.at}.length()) / 1e9, now});
  }
  return line;
}

FRUGAL_INLINE MemoryPoint peak_of(std::vector<MemoryPoint> const& line) {
  auto const highest = std::max_element(
      line.begin(), line.end(),
      [](MemoryPoint const& a, MemoryPoint const& b) { return a.bytes < b.bytes; });
  return highest == line.end() ? MemoryPoint{} : *highest;
}

FRUGAL_INLINE std::vector<MemoryPoint> thinned(std::vector<MemoryPoint> const& line,
                                               std::size_t most) {
  if (most == 0 || line.size() <= most) return line;
  std::vector<MemoryPoint> few;
  for (std::size_t part = 0; part < most; ++part) {
    std::size_t const from = part * line.size() / most;
    std::size_t const to = (part + 1) * line.size() / most;
    few.push_back(peak_of({line.begin() + static_cast<std::ptrdiff_t>(from),
                           line.begin() + static_cast<std::ptrdiff_t>(to)}));
  }
  return few;
}

}  // namespace frugal::watch

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
