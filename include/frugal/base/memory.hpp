// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

/// Memory of this process, as the kernel counts it. Cheap enough for a progress bar: one small file
/// of /proc, no allocation. Nothing here throws; what cannot be read is nothing.
namespace frugal::watch {

namespace detail {

std::optional<std::uint64_t> number_at(std::string_view text);

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
std::optional<std::uint64_t> resident_bytes_in(std::string_view statm, std::uint64_t page_bytes);

/// Peak resident bytes in the text of /proc/self/status: the line "VmHWM:   1234 kB".
std::optional<std::uint64_t> peak_resident_bytes_in(std::string_view status);

/// Bytes of this process that are in memory now (resident set size).
std::optional<std::uint64_t> resident_bytes();

/// The most of them that there has been.
std::optional<std::uint64_t> peak_resident_bytes();

}  // namespace frugal::watch

#ifndef FRUGAL_COMPILED
#include <frugal/base/memory.ipp>
#endif
