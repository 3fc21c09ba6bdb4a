// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/memory.hpp>

#include <frugal/inline.hpp>

#include <sys/resource.h>

#include <charconv>

namespace frugal::watch::detail {

FRUGAL_INLINE std::optional<std::uint64_t> number_at(std::string_view text) {
  std::size_t const first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  text.remove_prefix(first);
  std::uint64_t value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return {};
  return value;
}

}  // namespace frugal::watch::detail

namespace frugal::watch {

FRUGAL_INLINE std::optional<std::uint64_t> resident_bytes_in(std::string_view statm,
                                                             std::uint64_t page_bytes) {
  if (!detail::number_at(statm)) return {};
  std::size_t const space = statm.find(' ', statm.find_first_not_of(' '));
  if (space == std::string_view::npos) return {};
  auto const pages = detail::number_at(statm.substr(space));
  if (!pages || (page_bytes != 0 && *pages > UINT64_MAX / page_bytes)) return {};
  return *pages * page_bytes;
}

FRUGAL_INLINE std::optional<std::uint64_t> peak_resident_bytes_in(std::string_view status) {
  constexpr std::string_view name = "VmHWM:";
  std::size_t at = status.find(name);
  while (at != 0 && at != std::string_view::npos && status[at - 1] != '\n') {
    at = status.find(name, at + 1);
  }
  if (at == std::string_view::npos) return {};
  std::string_view line = status.substr(at + name.size());
  line = line.substr(0, line.find('\n'));
  auto const kibibytes = detail::number_at(line);
  // The kernel says kB and means KiB.
  if (!kibibytes || line.find("kB") == std::string_view::npos) return {};
  if (*kibibytes > UINT64_MAX / 1024) return {};
  return *kibibytes * 1024;
}

FRUGAL_INLINE std::optional<std::uint64_t> resident_bytes() {
  std::array<char, 256> buffer;
  long const page = ::sysconf(_SC_PAGESIZE);
  if (page <= 0) return {};
  return resident_bytes_in(detail::read_small("/proc/self/statm", buffer),
                           static_cast<std::uint64_t>(page));
}

FRUGAL_INLINE std::optional<std::uint64_t> peak_resident_bytes() {
  std::array<char, 4096> buffer;
  if (auto const peak = peak_resident_bytes_in(detail::read_small("/proc/self/status", buffer))) {
    return peak;
  }
  // Some sandboxes' /proc lacks the line.
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0 || usage.ru_maxrss <= 0) return {};
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace frugal::watch
