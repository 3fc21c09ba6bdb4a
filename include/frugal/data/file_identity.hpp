// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/core/source/data_identity.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>

namespace frugal::detail {

/// How much of a file is read.
enum class ReadOf { parts, whole };

/// What the files of a set are, wherever they lie: their number, bytes, names and content, in their
/// order. No times: a machine that fetched the files again resumes.
///
/// Cost    up to `most_sized` files, spread over all, are asked for their size. Up to `most_read`
///         of these are opened, and 64 KiB of each are read: its ends, and two blocks between. With
///         ReadOf::whole all of each file.
/// Errors  none: a file that cannot be read counts as empty, and training names it.
class FilesIdentity {
 public:
  static constexpr std::size_t most_sized = std::size_t{1} << 16, most_read = 1024;

  /// `files`: how many will be added.
  explicit FilesIdentity(std::size_t files, ReadOf read = ReadOf::parts)
      : sized_(stride(files, most_sized)),
        opened_(sized_ * stride((files + sized_ - 1) / sized_, most_read)),
        read_(read) {}

  /// `name`: without the folder that may move.
  void add(std::filesystem::path const& path, std::string const& name);
  void add(std::filesystem::path const& path) { add(path, path.filename().string()); }

  void identify(DataIdentity& to) const;

 private:
  static constexpr std::uint64_t block = std::uint64_t{16} << 10, blocks = 4;

  /// Each how many-th of so many is taken, so that there are at most `most`.
  static constexpr std::size_t stride(std::size_t of, std::size_t most) {
    return std::max<std::size_t>(1, (of + most - 1) / most);
  }

  static void update(Hash& hash, std::string const& text);

  void read(std::filesystem::path const& path, std::uint64_t bytes);
  void read(std::ifstream& file, std::uint64_t begin, std::uint64_t bytes);

  std::size_t sized_;   // each of which the size is asked
  std::size_t opened_;  // each of which the content is read
  ReadOf read_;
  std::size_t files_ = 0;
  std::uint64_t bytes_ = 0;
  Hash names_;
  Hash content_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/file_identity.ipp>
#endif
