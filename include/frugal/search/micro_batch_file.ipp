// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/micro_batch_file.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/name_hash.hpp>
#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/inline.hpp>

#include <fstream>
#include <limits>
#include <string>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE MicroBatchFile::MicroBatchFile(std::filesystem::path const& folder,
                                             std::string_view key)
    : path_(folder / "micro_batches" / hex_of(name_hash(key))) {}

FRUGAL_INLINE void MicroBatchFile::read_into(std::int64_t& samples) const {
  std::ifstream in(path_);
  std::int64_t found = 0;
  if (!(in >> found) || found < 0) return;
  // 0 is a batch that was not split, and would be searched for again.
  samples = found == 0 ? std::numeric_limits<std::int64_t>::max() / 2 : found;
}

FRUGAL_INLINE void MicroBatchFile::write(std::int64_t samples, bool found) const {
  std::int64_t known = std::numeric_limits<std::int64_t>::max();
  read_into(known);
  if (!found &&
      (known == std::numeric_limits<std::int64_t>::max() || samples == 0 || samples >= known))
    return;
  create_folders(path_.parent_path());
  // Two workers may find it at once: each writes a file of its own, so none replaces half of the other's.
  std::filesystem::path mine = path_;
  mine += "." + LockOwner::here().host + "." + std::to_string(::getpid());
  write_whole_file(mine, std::to_string(samples), Durable::no);
  rename_path(mine, path_);
}

}  // namespace frugal::detail
