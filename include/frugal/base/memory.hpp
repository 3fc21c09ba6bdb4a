// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <frugal/inline.hpp>

/// Memory of this process, as the kernel counts it. Cheap enough for a progress bar: one small file
/// of /proc, no allocation. Nothing here throws; what cannot be read is nothing.
namespace frugal::watch {

namespace detail {

FRUGAL_INLINE std::optional<std::uint64_t> number_at(std::string_view text) {
  std::size_t const first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  text.remove_prefix(first);
  std::uint64_t value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return {};
  return value;
}

/// The beginning of a small file; empty if it cannot be read.
template <std::size_t N>
std::string_view read_small(char const* path, std::array<char, N>& buffer) {
  int const file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::size_t size = 0;
  while (size < N) {
    ssize_t const n = ::read(file, buffer.data() + size, N - size);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  ::close(file);
  return {buffer.data(), size};
}

}  // namespace detail

/// TensorDataset bytes in the text of /proc/self/statm, whose second number is resident pages.
FRUGAL_INLINE std::optional<std::uint64_t> resident_bytes_in(std::string_view statm,
                                                             std::uint64_t page_bytes) {
  if (!detail::number_at(statm)) return {};
  std::size_t const space = statm.find(' ', statm.find_first_not_of(' '));
  if (space == std::string_view::npos) return {};
  auto const pages = detail::number_at(statm.substr(space));
  if (!pages || (page_bytes != 0 && *pages > UINT64_MAX / page_bytes)) return {};
  return *pages * page_bytes;
}

/// Peak resident bytes in the text of /proc/self/status: the line "VmHWM:   1234 kB".
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

/// Bytes of this process that are in memory now (resident set size).
FRUGAL_INLINE std::optional<std::uint64_t> resident_bytes() {
  std::array<char, 256> buffer;
  long const page = ::sysconf(_SC_PAGESIZE);
  if (page <= 0) return {};
  return resident_bytes_in(detail::read_small("/proc/self/statm", buffer),
                           static_cast<std::uint64_t>(page));
}

/// The most of them that there has been.
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
