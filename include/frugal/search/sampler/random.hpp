// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <frugal/data/sampling/draw.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

/// Random search: each recipe as likely, and each value of its settings as its distribution has it. It looks
/// at no history, so it needs no trial to be over, and any number of workers can ask at the same time.
///
/// Source  Bergstra and Bengio, "Random search for hyper-parameter optimization" (JMLR 13, 2012).
struct RandomSampler {
  static constexpr std::string_view name = "random";
  static constexpr bool learns = false;

  FRUGAL_INLINE Candidate suggest(SearchDomain const& domain, SearchHistory const&,
                                  std::size_t trial, std::uint64_t seed) const {
    Draw draw({.index = trial, .seed = seed}, draw_stream("search.random"));
    return uniform_candidate(domain, draw);
  }

  void require() const {}
  /// For the journal: searches whose samplers differ are not the same.
  FRUGAL_INLINE std::string text() const { return std::string(name); }
  std::size_t generation() const { return 0; }

  friend bool operator==(RandomSampler const&, RandomSampler const&) = default;
};

static_assert(SearchSampler<RandomSampler>);

}  // namespace frugal
