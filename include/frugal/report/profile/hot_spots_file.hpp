// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <frugal/report/profile/window_profile.hpp>

namespace frugal::detail {

std::string json_of(WindowProfile const& window);

/// `hot_spots.json`: the last windows of a run, one per line.
class HotSpotsFile {
 public:
  /// The file is rewritten for each window, and its reader shows no more.
  static constexpr std::size_t most_windows = 1000;

  explicit HotSpotsFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Keeps the windows of an earlier process up to its checkpoint: the later ones are made again.
  /// What is not a file of this kind is replaced.
  void resume_at(std::uint64_t step);

  /// Adds a window, and replaces the file as a whole, so that a reader never sees half of it. False
  /// if that failed. The window's `overhead_seconds` become those that `overhead()` returns after
  /// that; in the file they are those before it, until the next window is added.
  template <class Overhead>
  bool add(WindowProfile& window, Overhead const& overhead) {
    keep(most_windows - 1);
    window.overhead_seconds = overhead();
    windows_.push_back(json_of(window));
    bool const written = write();
    window.overhead_seconds = overhead();
    windows_.back() = json_of(window);
    return written;
  }

 private:
  bool write() const;

  void keep(std::size_t most);

  std::filesystem::path path_;
  std::vector<std::string> windows_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile/hot_spots_file.ipp>
#endif
