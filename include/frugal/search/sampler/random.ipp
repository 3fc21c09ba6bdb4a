// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/sampler/random.hpp>

#include <frugal/data/sampling/permutation.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE Candidate RandomSampler::suggest(SearchDomain const& domain, SearchHistory const&,
                                               std::size_t trial, std::uint64_t seed) const {
  Draw draw({.index = trial, .seed = seed}, draw_stream("search.random"));
  return uniform_candidate(domain, draw);
}

FRUGAL_INLINE std::string RandomSampler::text() const { return std::string(name); }

}  // namespace frugal
