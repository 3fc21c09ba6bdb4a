// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/folder.hpp>
#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/checkpoint_list.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// The result of deleting checkpoints.
struct Removal {
  std::vector<SavedCheckpoint> removed;  ///< no longer checkpoints
  std::vector<Damage> left;              ///< what could not be deleted, and why
};

}  // namespace frugal

namespace frugal::detail {

/// Deletes the files of checkpoints that have lost their names, as far as possible. A file that
/// another process holds open over a network, or a missing permission, must not end a run: a failed
/// deletion is reported, and retried at the next call.
class Deleter {
 public:
  /// `moved`: folders in `checkpoints` that have lost their names. Also retries those that earlier
  /// calls could not delete.
  FRUGAL_INLINE void remove(std::filesystem::path const& checkpoints,
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

  FRUGAL_INLINE void leave(std::filesystem::path const& path, std::string const& why,
                           Removal& out) {
    out.left.push_back({path, why});
    if (told_.insert(path).second) left_.push_back({path, why});
  }

  /// What could not be deleted since the last call of this function; each path is reported once,
  /// however often it is retried.
  std::vector<Damage> take_leftovers() { return std::exchange(left_, {}); }

 private:
  std::vector<std::filesystem::path> unfinished_;
  std::vector<Damage> left_;
  std::set<std::filesystem::path> told_;
};

}  // namespace frugal::detail
