// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/seen_file.hpp>

#include <frugal/base/file.hpp>
#include <frugal/checkpoint/commit.hpp>
#include <frugal/checkpoint/lock.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <chrono>
#include <cstddef>
#include <thread>

namespace frugal::detail {

FRUGAL_INLINE SeenFile::SeenFile(std::filesystem::path const& folder)
    : path_(folder / temporary_name("seen")) {
  std::string const owner = LockOwner::here().text();
  try {
    write_whole_file(path_, owner, Durable::no);
    text_ = path_.filename().string() + '\n' + owner;
  } catch (StoreError const&) {
    // The first save will say why.
  }
}

FRUGAL_INLINE bool SeenFile::is_seen(std::filesystem::path const& folder, std::string const& text,
                                     int tries) {
  if (text.empty()) return true;  // nobody can
  std::size_t const end = text.find('\n');
  std::filesystem::path const name = text.substr(0, end);
  if (end == std::string::npos || name.filename() != name) return false;
  for (int i = 0; i < tries; ++i) {
    if (i != 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    try {
      if (read_whole_file(folder / name) == text.substr(end + 1)) return true;
    } catch (StoreError const&) {
      continue;
    }
  }
  return false;
}

}  // namespace frugal::detail
