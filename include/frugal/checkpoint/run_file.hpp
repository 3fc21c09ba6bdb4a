// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

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

/// Opens a file of a run directory, or makes it with O_CREAT: every one that is kept open or read
/// back. -1 with errno; ELOOP for a link that is refused.
int open_run_file(std::filesystem::path const& path, int flags, Links links = Links::refuse);

/// The first bytes of such a file, at most `most`; empty if it is missing, or is a link.
std::string read_run_file(std::filesystem::path const& path, std::size_t most);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/run_file.ipp>
#endif
