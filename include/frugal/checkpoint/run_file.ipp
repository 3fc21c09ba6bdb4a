// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/run_file.hpp>

#include <frugal/inline.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace frugal::detail {

FRUGAL_INLINE int open_run_file(std::filesystem::path const& path, int flags, Links links) {
  int const all = flags | O_CLOEXEC | (links == Links::refuse ? O_NOFOLLOW : 0);
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), all, 0666);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

FRUGAL_INLINE std::string read_run_file(std::filesystem::path const& path, std::size_t most) {
  std::string text(most, '\0');
  int const descriptor = open_run_file(path, O_RDONLY);
  std::size_t size = 0;
  while (descriptor >= 0 && size < most) {
    ssize_t const got = ::read(descriptor, text.data() + size, most - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (descriptor >= 0) ::close(descriptor);
  text.resize(size);
  return text;
}

}  // namespace frugal::detail
