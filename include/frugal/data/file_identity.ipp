// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/file_identity.hpp>

#include <frugal/inline.hpp>

#include <span>
#include <system_error>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE void FilesIdentity::add(std::filesystem::path const& path, std::string const& name) {
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

FRUGAL_INLINE void FilesIdentity::identify(DataIdentity& to) const {
  to.add("files", std::to_string(files_) + ", " + std::to_string(bytes_) + " bytes" +
                      (sized_ == 1 ? "" : " in some of them") + ", hash of names and sizes " +
                      hex_of(names_.digest()));
  to.add("content", "hash " + hex_of(content_.digest()));
}

FRUGAL_INLINE void FilesIdentity::update(Hash& hash, std::string const& text) {
  std::uint64_t const size = text.size();
  hash.update(std::as_bytes(std::span(&size, 1)));
  hash.update(std::as_bytes(std::span(text)));
}

FRUGAL_INLINE void FilesIdentity::read(std::filesystem::path const& path, std::uint64_t bytes) {
  std::ifstream file(path, std::ios::binary);
  if (read_ == ReadOf::whole || bytes <= block * blocks) return read(file, 0, bytes);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    read(file, (bytes - block) * i / (blocks - 1), block);
  }
}

FRUGAL_INLINE void FilesIdentity::read(std::ifstream& file, std::uint64_t begin,
                                       std::uint64_t bytes) {
  std::vector<char> buffer(
      static_cast<std::size_t>(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 20)));
  file.seekg(static_cast<std::streamoff>(begin));
  while (bytes > 0 && file) {
    auto const wanted = static_cast<std::streamsize>(std::min<std::uint64_t>(bytes, buffer.size()));
    file.read(buffer.data(), wanted);
    auto const got = static_cast<std::size_t>(file.gcount());
    content_.update(std::as_bytes(std::span(buffer).first(got)));
    bytes -= got;
  }
}

}  // namespace frugal::detail
