// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/journal_records.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace frugal::detail {

/// What a trial's folder belongs to, a line each: the candidate, its seed and a hash of the search's identity. A
/// journal that was lost or restored from a copy draws other candidates for the same folders.
std::string candidate_text(SearchDomain const& domain, SearchTrial const& trial,
                           SearchIdentity const& identity);

/// Names the candidate in a trial's folder. StateError if its checkpoints are those of another one.
void claim_folder(std::filesystem::path const& folder, std::string const& candidate);

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
#include <frugal/search/folder_files.ipp>
#endif
