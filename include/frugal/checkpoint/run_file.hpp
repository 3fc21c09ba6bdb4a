// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// Whether a file is opened where its name is a symbolic link. A name of frugal's own in a run's
/// folder is never followed: what is behind the link is another program's, and would be appended
/// to, cut or emptied. A path that the program has set, such as /dev/stdout, is. The folder itself
/// may be a link.
enum class Links : bool { refuse, follow };

/// For a policy with a path that may be set.
inline Links links_of(std::filesystem::path const& set) {
  return set.empty() ? Links::refuse : Links::follow;
}

/// Opens a file of a run's folder, or makes it with O_CREAT: every one that is kept open or read
/// back. -1 with errno; ELOOP for a link that is refused.
FRUGAL_INLINE int open_run_file(std::filesystem::path const& path, int flags,
                                Links links = Links::refuse) {
  int const all = flags | O_CLOEXEC | (links == Links::refuse ? O_NOFOLLOW : 0);
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), all, 0666);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

/// The first bytes of such a file, at most `most`; empty if it is missing, or is a link.
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
