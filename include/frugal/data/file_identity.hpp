// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/data/data_identity.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <span>
#include <string>
#include <system_error>
#include <vector>

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
  FRUGAL_INLINE void add(std::filesystem::path const& path, std::string const& name) {
    update(names_, name);
    std::size_t const at = files_++;
    if (at % sized_ != 0) return;
    std::error_code error;
    std::uint64_t const size = std::filesystem::file_size(path, error);
    std::uint64_t const bytes = error ? 0 : size;
    bytes_ += bytes;
    names_.update(std::as_bytes(std::span(&bytes, 1)));
    if (at % opened_ == 0) read(path, bytes);
  }
  void add(std::filesystem::path const& path) { add(path, path.filename().string()); }

  FRUGAL_INLINE void identify(DataIdentity& to) const {
    to.add("files", std::to_string(files_) + ", " + std::to_string(bytes_) + " bytes" +
                        (sized_ == 1 ? "" : " in some of them") + ", hash of names and sizes " +
                        hex_of(names_.digest()));
    to.add("content", "hash " + hex_of(content_.digest()));
  }

 private:
  static constexpr std::uint64_t block = std::uint64_t{16} << 10, blocks = 4;

  /// Each how many-th of so many is taken, so that there are at most `most`.
  static constexpr std::size_t stride(std::size_t of, std::size_t most) {
    return std::max<std::size_t>(1, (of + most - 1) / most);
  }

  FRUGAL_INLINE static void update(Hash& hash, std::string const& text) {
    std::uint64_t const size = text.size();
    hash.update(std::as_bytes(std::span(&size, 1)));
    hash.update(std::as_bytes(std::span(text)));
  }

  FRUGAL_INLINE void read(std::filesystem::path const& path, std::uint64_t bytes) {
    std::ifstream file(path, std::ios::binary);
    if (read_ == ReadOf::whole || bytes <= block * blocks) return read(file, 0, bytes);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      read(file, (bytes - block) * i / (blocks - 1), block);
    }
  }
  FRUGAL_INLINE void read(std::ifstream& file, std::uint64_t begin, std::uint64_t bytes) {
    std::vector<char> buffer(
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 20)));
    file.seekg(static_cast<std::streamoff>(begin));
    while (bytes > 0 && file) {
      auto const wanted =
          static_cast<std::streamsize>(std::min<std::uint64_t>(bytes, buffer.size()));
      file.read(buffer.data(), wanted);
      auto const got = static_cast<std::size_t>(file.gcount());
      content_.update(std::as_bytes(std::span(buffer).first(got)));
      bytes -= got;
    }
  }

  std::size_t sized_;   // each of which the size is asked
  std::size_t opened_;  // each of which the content is read
  ReadOf read_;
  std::size_t files_ = 0;
  std::uint64_t bytes_ = 0;
  Hash names_;
  Hash content_;
};

}  // namespace frugal::detail
