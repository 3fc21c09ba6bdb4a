// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/removal.hpp>

#include <frugal/base/folder.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void Deleter::remove(std::filesystem::path const& checkpoints,
                                   std::vector<std::filesystem::path> moved, Removal& out) {
  if (!moved.empty()) {
    try {
      sync_folder(checkpoints);
    } catch (StoreError const& error) {
      // The old names may come back after a crash, and would name half-empty folders.
      for (auto const& path : moved) leave(path, error.fault().why, out);
      moved.clear();
    }
  }
  for (auto& path : std::exchange(unfinished_, {})) moved.push_back(std::move(path));
  for (auto& path : moved) {
    try {
      remove_tree(path);
    } catch (StoreError const& error) {
      leave(path, error.fault().why, out);
      unfinished_.push_back(std::move(path));
    }
  }
}

FRUGAL_INLINE void Deleter::leave(std::filesystem::path const& path, std::string const& why,
                                  Removal& out) {
  out.left.push_back({path, why});
  if (told_.insert(path).second) left_.push_back({path, why});
}

}  // namespace frugal::detail
