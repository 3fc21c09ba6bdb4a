// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/checkpoint_list.hpp>

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
  void remove(std::filesystem::path const& checkpoints, std::vector<std::filesystem::path> moved,
              Removal& out);

  void leave(std::filesystem::path const& path, std::string const& why, Removal& out);

  /// What could not be deleted since the last call of this function; each path is reported once,
  /// however often it is retried.
  std::vector<Damage> take_leftovers() { return std::exchange(left_, {}); }

 private:
  std::vector<std::filesystem::path> unfinished_;
  std::vector<Damage> left_;
  std::set<std::filesystem::path> told_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/removal.ipp>
#endif
