// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace frugal::detail {

/// The micro-batch that AutoBatch has found for an architecture: the next trial of that architecture takes it, and
/// makes no trial steps.
class MicroBatchFile {
 public:
  /// `folder`: of the search. `key`: what the memory of a step depends on.
  MicroBatchFile(std::filesystem::path const& folder, std::string_view key);

  /// Leaves the number alone if nothing was found before.
  void read_into(std::int64_t& samples) const;
  /// `found`: by a search that came to its end. Otherwise only a smaller number replaces one that is there: memory
  /// has run out since.
  void write(std::int64_t samples, bool found) const;

 private:
  std::filesystem::path path_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/micro_batch_file.ipp>
#endif
