// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <frugal/search/journal/reader.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal::detail {

/// What a trial's folder belongs to, a line each: the candidate, its seed and a hash of the search's identity. A
/// journal that was lost or restored from a copy draws other candidates for the same folders.
std::string candidate_text(SearchDomain const& domain, SearchTrial const& trial,
                           SearchIdentity const& identity);

/// Names the candidate in a trial's folder. StateError if its checkpoints are those of another one.
void claim_folder(std::filesystem::path const& folder, std::string const& candidate);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/candidate_file.ipp>
#endif
