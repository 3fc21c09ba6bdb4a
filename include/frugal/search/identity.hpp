// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <frugal/core/run/run_limits.hpp>
#include <frugal/search/job.hpp>
#include <frugal/search/journal/reader.hpp>
#include <frugal/search/trials/candidate.hpp>

namespace frugal::detail {

/// The texts that a process must have in common with those that have searched in a folder before: whatever
/// decisions depend on. JobIdentity adds what the trials are trained with.
///
/// `limits`: of each recipe's run.
SearchIdentity search_identity(SearchSettings const& settings, SearchDomain const& domain,
                               std::string const& schedule, std::string const& sampler,
                               std::vector<RunLimits> const& limits);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/identity.ipp>
#endif
